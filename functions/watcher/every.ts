import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "#shared/telemetry/logger.ts";

export interface EveryOptions {
  /** For the log. */
  name: string;
  intervalMs: number;
  signal: AbortSignal;
  log: Logger;
}

/**
 * Runs `work` at once and then with `intervalMs` between an end and the next start, until the signal fires; never twice
 * at a time. A failure is logged and the next turn comes as usual. Resolves once it has ended.
 */
export async function every(
  { name, intervalMs, signal, log }: EveryOptions,
  work: () => Promise<unknown>,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await work();
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error, timer: name }, "a timer's work failed; it is tried again");
    }
    await sleep(intervalMs, undefined, { signal }).catch(() => undefined); // fires early only when it is to end
  }
}
