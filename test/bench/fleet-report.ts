import { z } from "zod";

/** What the functions process of `bench fleet` tells of itself when it is asked. */
export const fleetReport = z.object({
  /** Port of the one server that stands for every proxy. */
  port: z.int(),
  instances: z.int(),
  /** Calls of the provider so far, by operation. */
  calls: z.record(z.string(), z.int()),
  /** Ends of runs so far, by kind. */
  runs: z.record(z.string(), z.int()),
  probes: z.int(),
});
export type FleetReport = z.infer<typeof fleetReport>;
