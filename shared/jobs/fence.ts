import { Failure } from "#shared/errors/failure.ts";
import type { KeyState } from "./key-state.ts";

/** Keeps a run that was overtaken (paused, cut off, stalled) from changing anything outside. */
export interface Fence {
  /** Grows with every run of the key, also after Redis lost its data. Goes with every write that can compare it. */
  readonly token: number;
  /**
   * Resolves when this run may still change something. Call it right before each call that does.
   * Throws a Failure: Transient `Superseded` when a newer run has the key, or when more than the lock's duration has
   * passed since the run began or since `renewRead`; the signal's reason once that has fired. Never waits longer than the lock's
   * duration, also while Redis is away.
   */
  check(): Promise<void>;
  /** What the run acts on is about to be read anew. Call it right BEFORE the read: a pause during it must count. */
  renewRead(): void;
}

export interface FenceDeps {
  state: KeyState;
  token: number;
  signal: AbortSignal;
  lockMs: number;
  /** A monotonic clock in milliseconds. */
  now: () => number;
}

/** The fence of a run that begins now. */
export function createFence({ state, token, signal, lockMs, now }: FenceDeps): Fence {
  let readAt = now();
  const leftMs = (): number => readAt + lockMs - now();
  const tooOld = (): Failure =>
    superseded(`what this run has read is older than ${lockMs} ms: another run may have the key`);
  return {
    token,
    renewRead() {
      readAt = now();
    },
    async check() {
      signal.throwIfAborted();
      if (leftMs() <= 0) throw tooOld();
      const newest = await within(state.isNewest(token), leftMs(), tooOld);
      if (!newest) throw superseded("a newer run has the key");
      // Again, after the answer: the process may have been paused while it waited for it.
      signal.throwIfAborted();
      if (leftMs() <= 0) throw tooOld();
    },
  };
}

function superseded(message: string): Failure {
  return new Failure({ class: "Transient", code: "Superseded", op: "fence", message });
}

async function within<T>(answer: Promise<T>, ms: number, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms);
  });
  try {
    return await Promise.race([answer, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
