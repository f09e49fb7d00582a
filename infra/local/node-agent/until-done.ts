import { setTimeout as sleep } from "node:timers/promises";
import { isNotFound } from "#shared/errors/failure.ts";

const longestPauseMs = 5_000;

/**
 * Repeats `work` until it succeeds, with growing pauses, and reports every failure. Rejects at once when what it is about
 * is gone (NotFound), and when `signal` fires.
 */
export async function untilDone<T>(
  work: () => Promise<T>,
  options: { signal: AbortSignal; onFailure: (error: unknown) => void },
): Promise<T> {
  for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    options.signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (isNotFound(error) || options.signal.aborted) throw error;
      options.onFailure(error);
    }
    await sleep(pauseMs, undefined, { signal: options.signal });
  }
}
