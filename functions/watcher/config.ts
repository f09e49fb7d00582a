import { z } from "zod";
import { integer } from "#shared/process/environment.ts";

/** Settings of the watcher. */
export const watcherSettings = z.object({
  POD_NAME: z
    .string()
    .optional()
    .describe("Name of this Pod, under which it stands for leader; the chart sets it. A new random one when absent."),
  RESYNC_SECONDS: integer(10, 86_400)
    .default(600)
    .describe("Every Proxy is looked at once in this time, even if nothing happens; a retry keeps its own time."),
});
export type WatcherSettings = z.infer<typeof watcherSettings>;
