import { setTimeout as sleep } from "node:timers/promises";
import { toFailure } from "#shared/errors/failure.ts";

/** A process of ours. */
export interface Running {
  pid: number;
  /** Settles with the reason when it has ended, whoever ended it. */
  ended: Promise<string>;
  stop(): Promise<void>;
}

export interface KeptRunning<T extends Running> {
  /** The process as it runs now. */
  current: () => T;
  stop: () => Promise<void>;
}

const shortestPauseMs = 1_000;
const longestPauseMs = 30_000;
/** Who ran that long does not die in a loop. */
const steadyMs = 60_000;

/** For tests. */
export interface Clock {
  now: () => number;
  /** Settles at once when `signal` fires. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

const realClock: Clock = {
  now: () => performance.now(),
  pause: (ms, signal) => sleep(ms, undefined, { signal }).catch(() => undefined),
};

/**
 * Starts a process, and starts it again when it ends unasked: what a Deployment would do. The pause before that doubles
 * with each end that soon follows a start. `start` gets the process that has ended, or nothing the first time. `say` is
 * told of every end.
 */
export async function keepRunning<T extends Running>(
  name: string,
  start: (before?: T) => Promise<T>,
  say: (line: string) => void,
  { now, pause }: Clock = realClock,
): Promise<KeptRunning<T>> {
  const stopping = new AbortController();
  let current = await start();
  let startedAt = now();
  let endsInARow = 0;

  /** What has ended, or why it could not be started again; settles when the next attempt is due. */
  const waitForTurn = async (what: string): Promise<void> => {
    endsInARow = now() - startedAt >= steadyMs ? 1 : endsInARow + 1;
    const pauseMs = Math.min(shortestPauseMs * 2 ** (endsInARow - 1), longestPauseMs);
    const again = endsInARow === 1 ? "" : ` (${endsInARow} times in a row)`;
    say(`${name} ${what}\n${name} is started again in ${pauseMs / 1000} s${again}`);
    await pause(pauseMs, stopping.signal);
  };
  const restart = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      startedAt = now();
      try {
        current = await start(current);
        return say(`${name} runs again`);
      } catch (error) {
        await waitForTurn(`could not be started again: ${toFailure(error).message}`);
      }
    }
  };
  const supervise = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const reason = await current.ended;
      if (stopping.signal.aborted) return;
      await waitForTurn(`has ended: ${reason}`);
      await restart();
    }
  };
  const supervised = supervise();
  const stop = async (): Promise<void> => {
    stopping.abort();
    await current.stop();
    await supervised;
    await current.stop(); // one that was being started meanwhile
  };
  return { current: () => current, stop };
}
