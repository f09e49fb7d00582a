import { leaseApiSettings } from "#functions/lease-api/config.ts";
import { startLeaseApi as listen } from "#functions/lease-api/lease-api.ts";
import { parseEnvironment } from "#shared/process/environment.ts";
import { loggerOf, type ProcessContext, type Role } from "./process-context.ts";
import { openRedis } from "./redis.ts";

/** Serves the lease API. It needs Redis alone, and is ready while Redis is away: it then answers 503 by itself. */
export async function startLeaseApi(context: ProcessContext): Promise<Role> {
  const settings = parseEnvironment(leaseApiSettings, context.env);
  const log = loggerOf(context, "lease-api");
  const api = await listen({
    redis: openRedis(context, "lease-api", "fail"),
    settings,
    log,
    metrics: {
      request: ({ method, route, status }) => context.metrics.leaseRequests.inc({ method, route, status }),
      problem: (kind) => context.metrics.problems.inc({ kind }),
    },
  });
  context.parts.add("lease-api", () => api.close());
  log.info(api.address, "the lease API listens");
  return { notReady: () => [] };
}
