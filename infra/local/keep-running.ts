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

const restartMs = 1_000;

/**
 * Starts a process, and starts it again when it ends unasked: what a Deployment would do. `start` gets the process that
 * has ended, or nothing the first time. `say` is told of every end.
 */
export async function keepRunning<T extends Running>(
  name: string,
  start: (before?: T) => Promise<T>,
  say: (line: string) => void,
): Promise<KeptRunning<T>> {
  const stopping = new AbortController();
  let current = await start();
  const restart = async (): Promise<void> => {
    try {
      current = await start(current);
      say(`${name} runs again`);
    } catch (error) {
      say(`${name} could not be started again: ${toFailure(error).message}`);
    }
  };
  const supervise = async (): Promise<void> => {
    for (;;) {
      const reason = await current.ended;
      if (stopping.signal.aborted) return;
      say(`${name} has ended: ${reason}`);
      await sleep(restartMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return;
      await restart();
    }
  };
  const supervised = supervise();
  const stop = async (): Promise<void> => {
    stopping.abort();
    await current.stop();
    await supervised;
  };
  return { current: () => current, stop };
}
