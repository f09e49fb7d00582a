import { z } from "zod";
import { integer } from "#shared/process/environment.ts";

/** Settings of reconcile. */
export const reconcileSettings = z.object({
  RECONCILE_CONCURRENCY: integer(1, 1000)
    .default(10)
    .describe("Proxies of one provider that a process reconciles at once; a provider's own `concurrency` lowers it."),
  PENDING_POLL_SECONDS: integer(1, 3600)
    .default(10)
    .describe("How often a pending or deleting instance is read; the kubernetes provider's Pods every 2 s."),
  QUOTA_RETRY_SECONDS: integer(1, 86_400)
    .default(300)
    .describe("Time until a create that lacked quota is tried again."),
  PERMANENT_RETRY_SECONDS: integer(1, 86_400)
    .default(3600)
    .describe("Time until a refused call is tried again without a change."),
});
export type ReconcileSettings = z.infer<typeof reconcileSettings>;
