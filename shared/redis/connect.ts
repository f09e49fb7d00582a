import { Cluster, Redis, type RedisOptions } from "ioredis";

export type RedisClient = Redis | Cluster;

export interface RedisConnectOptions {
  /** `redis://`, `rediss://`, `redis+sentinel://host:port,host:port/master` or `redis+cluster://host:port,host:port`; `rediss+…` for TLS. */
  url: string;
  /** Shown by CLIENT LIST. */
  name: string;
  /** Called with every connection error; ioredis reconnects by itself. */
  onError: (error: Error) => void;
  /**
   * `wait`: a command waits for as long as Redis is away (workers, which retry anyway).
   * `fail`: a command fails once Redis has been away for a moment (the lease API answers 503 at once).
   */
  whenDown: "wait" | "fail";
}

const reconnectDelayMs = (attempt: number): number => Math.min(attempt * 50, 500);

/** Connects in the background and keeps reconnecting; `quit()` or `disconnect()` ends it. Throws on a malformed url. */
export function connectRedis(options: RedisConnectOptions): RedisClient {
  const target = parseRedisUrl(options.url);
  const common: RedisOptions = {
    connectionName: options.name,
    connectTimeout: 5_000,
    ...(target.tls ? { tls: {} } : {}),
    ...(target.username === undefined ? {} : { username: target.username }),
    ...(target.password === undefined ? {} : { password: target.password }),
    ...(options.whenDown === "wait"
      ? { maxRetriesPerRequest: null }
      : { maxRetriesPerRequest: 0, enableOfflineQueue: false, commandTimeout: 2_000 }),
  };
  const client = open(target, common);
  client.on("error", options.onError);
  return client;
}

function open(target: RedisTarget, common: RedisOptions): RedisClient {
  const [first] = target.hosts;
  if (target.kind === "cluster") {
    const { enableOfflineQueue = true } = common;
    return new Cluster(target.hosts, {
      redisOptions: common,
      enableOfflineQueue,
      clusterRetryStrategy: reconnectDelayMs,
    });
  }
  const single = { ...common, retryStrategy: reconnectDelayMs, db: target.db };
  if (target.kind === "sentinel") {
    return new Redis({
      ...single,
      sentinels: target.hosts,
      name: target.master,
      sentinelRetryStrategy: reconnectDelayMs,
    });
  }
  return new Redis({ ...single, ...first });
}

interface RedisTarget {
  kind: "single" | "sentinel" | "cluster";
  tls: boolean;
  hosts: { host: string; port: number }[];
  master: string;
  db: number;
  username?: string;
  password?: string;
}

const shape = /^(rediss?)(?:\+(sentinel|cluster))?:\/\/(?:([^@]*)@)?([^/]+)(?:\/([^/]*))?$/;

/** Parses REDIS_URL. The error names what was expected and never repeats the url, which holds a password. */
export function parseRedisUrl(url: string): RedisTarget {
  const match = shape.exec(url);
  const expected =
    "expected redis://[user:password@]host:port[/db], redis+sentinel://…/master or redis+cluster://…, with rediss for TLS";
  if (match === null) throw new Error(`not a Redis url: ${expected}`);
  const [, scheme, kind = "single", userinfo, hostList = "", path = ""] = match;
  if (kind === "sentinel" && path === "")
    throw new Error(`a Sentinel url names its master after the hosts: ${expected}`);
  const hosts = hostList.split(",").map((entry) => {
    const { hostname, port } = new URL(`tcp://${entry}`);
    return {
      host: hostname.replace(/^\[|\]$/g, ""),
      port: port === "" ? (kind === "sentinel" ? 26379 : 6379) : Number(port),
    };
  });
  const colon = userinfo?.indexOf(":") ?? -1;
  const username = colon > 0 ? decodeURIComponent(userinfo?.slice(0, colon) ?? "") : undefined;
  const password = userinfo === undefined ? undefined : decodeURIComponent(userinfo.slice(colon + 1));
  const db = kind === "single" && path !== "" ? Number(path) : 0;
  if (!Number.isInteger(db)) throw new Error(`the database of a Redis url is a number: ${expected}`);
  const target = {
    kind: kind === "sentinel" || kind === "cluster" ? kind : "single",
    tls: scheme === "rediss",
    hosts,
    master: path,
    db,
  } as const;
  return {
    ...target,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
  };
}
