import { onTestFinished } from "vitest";
import type { ProcessContext } from "#functions/roles/process-context.ts";
import { FollowedProvidersFile } from "#functions/roles/providers.ts";
import { RunningParts } from "#shared/process/stop.ts";
import { createLogger } from "#shared/telemetry/logger.ts";
import { Metrics } from "#shared/telemetry/metrics.ts";

/** What a role gets from its process, and the lines of its log. What the role starts ends with the test. */
export function testContext(env: Record<string, string> = {}): { context: ProcessContext; lines: string[] } {
  const lines: string[] = [];
  const levels = { level: "info", components: {} };
  const log = createLogger({ levels, pretty: false, destination: { write: (line) => void lines.push(line) } });
  const parts = new RunningParts(log);
  const stopping = new AbortController();
  onTestFinished(async () => {
    stopping.abort(new Error("the test ends"));
    await parts.stopAll(10_000);
  });
  const shared = { env, log, levels, metrics: new Metrics(), parts, stopping: stopping.signal };
  return { context: { ...shared, providersFile: new FollowedProvidersFile(shared) }, lines };
}
