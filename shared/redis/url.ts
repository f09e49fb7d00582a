export interface RedisTarget {
  kind: "single" | "sentinel" | "cluster";
  tls: boolean;
  hosts: { host: string; port: number }[];
  /** The name that Sentinel knows the master by; empty for the other kinds. */
  master: string;
  db: number;
  username?: string;
  password?: string;
  /** Of the Sentinels themselves, which need not ask for one where Redis does. */
  sentinelPassword?: string;
}

const expected =
  "expected redis://[[user]:password@]host[:port][/db], redis+sentinel://[[user]:password@]host[:port],…/master[?sentinelPassword=…] or redis+cluster://[[user]:password@]host[:port],…; rediss instead of redis for TLS";

const shape =
  /^(?<scheme>rediss?)(?:\+(?<kind>sentinel|cluster))?:\/\/(?:(?<user>[^@/]*)@)?(?<hosts>[^@/?]+)(?:\/(?<path>[^/?]*))?(?:\?sentinelPassword=(?<sentinelPassword>[^&]+))?$/;
const hostShape = /^(?:\[(?<v6>[0-9a-fA-F:.]+)\]|(?<name>[A-Za-z0-9._-]+))(?::(?<port>\d{1,5}))?$/;

/**
 * Parses REDIS_URL. User, password and Sentinel password are percent-encoded. The Error of a malformed url says what was
 * expected and never repeats any part of the url, which holds a password.
 */
export function parseRedisUrl(url: string): RedisTarget {
  const groups = shape.exec(url)?.groups;
  if (groups === undefined) throw new Error(`not a Redis url: ${expected}`);
  const kind = groups.kind === "sentinel" || groups.kind === "cluster" ? groups.kind : "single";
  const path = groups.path ?? "";
  if (kind === "sentinel" && path === "")
    throw new Error(`a Sentinel url names its master after the hosts: ${expected}`);
  if (kind === "cluster" && path !== "") throw new Error(`a Redis Cluster has one database only: ${expected}`);
  if (kind !== "sentinel" && groups.sentinelPassword !== undefined)
    throw new Error(`only a Sentinel url has a sentinelPassword: ${expected}`);
  if (kind === "single" && !/^\d*$/.test(path)) throw new Error(`the database of a Redis url is a number: ${expected}`);
  const hosts = (groups.hosts ?? "").split(",").map((entry) => parseHost(entry, kind === "sentinel" ? 26379 : 6379));
  if (kind === "single" && hosts.length > 1)
    throw new Error(`several hosts need redis+sentinel or redis+cluster: ${expected}`);
  return {
    kind,
    tls: groups.scheme === "rediss",
    hosts,
    master: kind === "sentinel" ? path : "",
    db: kind === "single" ? Number(path) : 0,
    ...parseCredentials(groups.user),
    ...(groups.sentinelPassword === undefined ? {} : { sentinelPassword: decode(groups.sentinelPassword) }),
  };
}

function parseHost(entry: string, defaultPort: number): { host: string; port: number } {
  const groups = hostShape.exec(entry)?.groups;
  const host = groups?.v6 ?? groups?.name;
  const port = groups?.port === undefined ? defaultPort : Number(groups.port);
  if (host === undefined || port < 1 || port > 65_535)
    throw new Error(`a host of the Redis url cannot be read: ${expected}`);
  return { host, port };
}

/** Without a colon it is the password alone, as redis-cli reads it. */
function parseCredentials(user: string | undefined): { username?: string; password?: string } {
  if (user === undefined || user === "") return {};
  const colon = user.indexOf(":");
  const username = decode(user.slice(0, Math.max(colon, 0)));
  const password = decode(user.slice(colon + 1));
  return { ...(username === "" ? {} : { username }), ...(password === "" ? {} : { password }) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error(`user and password of the Redis url must be percent-encoded: ${expected}`);
  }
}
