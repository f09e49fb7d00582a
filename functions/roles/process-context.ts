import type { RunningParts } from "#shared/process/stop.ts";
import { componentLogger, type Logger, type LogLevels } from "#shared/telemetry/logger.ts";
import type { Metrics } from "#shared/telemetry/metrics.ts";
import type { FollowedProvidersFile } from "./providers.ts";

/** What every role gets from the process that it runs in. */
export interface ProcessContext {
  env: Readonly<Record<string, string | undefined>>;
  log: Logger;
  levels: LogLevels;
  metrics: Metrics;
  parts: RunningParts;
  providersFile: FollowedProvidersFile;
  /** Fires when the process is to end. */
  stopping: AbortSignal;
}

/** A role that has started. */
export interface Role {
  /** Names of what it still waits for; empty when it is ready. */
  notReady: () => string[];
}

export function loggerOf({ log, levels }: Pick<ProcessContext, "log" | "levels">, component: string): Logger {
  return componentLogger(log, component, levels);
}
