import { z } from "zod";
import { integer } from "#shared/process/environment.ts";

const url = "expected an http or https url";

/** Settings of health-probe. */
export const healthProbeSettings = z.object({
  HEALTH_CHECK_URL: z
    .url({ protocol: /^https?$/, error: url })
    .optional()
    .describe(
      "Address that is fetched through a proxy that names none; without either, its own answer to a CONNECT counts.",
    ),
  HEALTH_PROBE_CONCURRENCY: integer(1, 10_000)
    .default(200)
    .describe("Probes under way at once in one process; one provider gets at most a quarter of them."),
});
export type HealthProbeSettings = z.infer<typeof healthProbeSettings>;
