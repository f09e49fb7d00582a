import type { RunningParts } from "#shared/process/stop.ts";
import { connectRedis, type RedisClient } from "#shared/redis/connect.ts";
import { startRedis } from "#test/redis.ts";

/** A Redis of the bench's own, and a connection that waits, as watcher and functions have one. */
export async function startBenchRedis(
  parts: RunningParts,
): Promise<{ url: string; redis: RedisClient; version: string }> {
  const server = await startRedis();
  parts.add("redis", () => server.stop());
  const redis = connectRedis({ url: server.url, name: "bench", whenDown: "wait", onError: () => undefined });
  parts.add("redis connection", () => redis.disconnect());
  const [, version = "unknown"] = /redis_version:(\S+)/.exec(await redis.info("server")) ?? [];
  return { url: server.url, redis, version };
}
