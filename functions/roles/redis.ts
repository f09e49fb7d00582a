import { parseEnvironment } from "#shared/process/environment.ts";
import { processSettings } from "#shared/process/settings.ts";
import { connectRedis, type RedisClient } from "#shared/redis/connect.ts";
import { loggerOf, type ProcessContext } from "./process-context.ts";

/** Connects a role to Redis; the connection ends with the process. Errors are counted, and logged once a minute at most. */
export function openRedis(context: ProcessContext, name: string, whenDown: "wait" | "fail"): RedisClient {
  const { REDIS_URL: url } = parseEnvironment(processSettings, context.env);
  const log = loggerOf(context, "redis");
  let loggedAt = -Infinity;
  const onError = (error: Error): void => {
    context.metrics.problems.inc({ kind: "redis-connection" });
    if (performance.now() - loggedAt < 60_000) return;
    loggedAt = performance.now();
    log.warn({ reason: error.message, connection: name }, "Redis is away; reconnecting");
  };
  const redis = connectRedis({ url, name: `egress-proxies-${name}`, whenDown, onError });
  context.parts.add(`redis ${name}`, () => redis.disconnect());
  return redis;
}
