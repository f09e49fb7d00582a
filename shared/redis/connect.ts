import { Cluster, Redis } from "ioredis";
import { parseRedisUrl, type RedisTarget } from "./url.ts";

export type RedisClient = Redis | Cluster;

export interface RedisConnectOptions {
  /** REDIS_URL: see `parseRedisUrl` for its forms. */
  url: string;
  /** Shown by CLIENT LIST. */
  name: string;
  /** Called with every connection error; ioredis reconnects by itself. */
  onError: (error: Error) => void;
  /**
   * `wait`: a command waits for as long as Redis is away (watcher and functions; job queues need it).
   * `fail`: a command fails at once, or within 2 s, while Redis is away (the lease API answers 503).
   */
  whenDown: "wait" | "fail";
}

/** Quick, since a restarted Redis is back within a second; a quarter-hour outage costs two attempts a second. */
const reconnectDelayMs = (attempt: number): number => Math.min(attempt * 50, 500);

/** Connects in the background and keeps reconnecting; `quit()` or `disconnect()` ends it. Throws on a malformed url. */
export function connectRedis(options: RedisConnectOptions): RedisClient {
  const target = parseRedisUrl(options.url);
  const client = target.kind === "cluster" ? openCluster(target, options) : openSingle(target, options);
  client.on("error", (error: Error) => options.onError(withoutArguments(error)));
  return client;
}

/** ioredis hangs the failed command on its errors, arguments and all: the password of an AUTH, a stored credential. */
export function withoutArguments<E>(error: E): E {
  if (error instanceof Error) Reflect.deleteProperty(error, "command");
  return error;
}

function openSingle(target: RedisTarget, options: RedisConnectOptions): Redis {
  const [first] = target.hosts;
  return new Redis({
    ...connection(target, options),
    enableOfflineQueue: options.whenDown === "wait",
    retryStrategy: reconnectDelayMs,
    db: target.db,
    ...(target.kind === "single"
      ? first
      : {
          sentinels: target.hosts,
          name: target.master,
          sentinelRetryStrategy: reconnectDelayMs,
          ...(target.sentinelPassword === undefined ? {} : { sentinelPassword: target.sentinelPassword }),
          ...(target.tls ? { sentinelTLS: {}, enableTLSForSentinelMode: true } : {}),
        }),
  });
}

function openCluster(target: RedisTarget, options: RedisConnectOptions): Cluster {
  return new Cluster(target.hosts, {
    redisOptions: connection(target, options),
    enableOfflineQueue: options.whenDown === "wait",
    clusterRetryStrategy: reconnectDelayMs,
    // A failover takes seconds. The defaults give up after 16 redirections of 0.1 s each.
    ...(options.whenDown === "wait"
      ? { retryDelayOnFailover: 200, retryDelayOnClusterDown: 200, maxRedirections: 200 }
      : {}),
  });
}

function connection(target: RedisTarget, options: RedisConnectOptions) {
  return {
    connectionName: options.name,
    connectTimeout: 5_000,
    ...(target.tls ? { tls: {} } : {}),
    ...(target.username === undefined ? {} : { username: target.username }),
    ...(target.password === undefined ? {} : { password: target.password }),
    ...(options.whenDown === "wait"
      ? { maxRetriesPerRequest: null }
      : { maxRetriesPerRequest: 0, commandTimeout: 2_000 }),
  };
}
