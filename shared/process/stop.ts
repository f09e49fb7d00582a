import type { Logger } from "#shared/telemetry/logger.ts";

/** Part of a process that is ended in order. */
export interface Part {
  name: string;
  stop: () => Promise<void>;
}

/**
 * The running parts of a process. They stop in the reverse of the order in which they were added, so that nothing
 * loses what it stands on: consumers before connections, the log last.
 */
export class RunningParts {
  readonly #parts: Part[] = [];
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  add(name: string, stop: () => Promise<void> | void): void {
    this.#parts.push({ name, stop: async () => await stop() });
  }

  /** Stops everything, each part within `timeoutMs`. One that fails is logged, and the next one still stops. */
  async stopAll(timeoutMs: number): Promise<void> {
    for (const part of this.#parts.splice(0).reverse()) {
      const timer = Promise.withResolvers<never>();
      const timeout = setTimeout(() => timer.reject(new Error(`did not stop within ${timeoutMs} ms`)), timeoutMs);
      try {
        await Promise.race([part.stop(), timer.promise]);
      } catch (error) {
        this.#log.error({ err: error, part: part.name }, "could not stop a part");
      } finally {
        clearTimeout(timeout);
      }
    }
  }
}

/** A Ctrl-C reaches a process twice when both the terminal and npm send it; that is one wish, not two. */
const sameWishMs = 1_000;

/** Resolves with the first SIGTERM, SIGINT or SIGHUP (the terminal was closed). One that comes more than a second later ends the process at once. */
export async function stopSignal(): Promise<NodeJS.Signals> {
  return await new Promise((resolve) => {
    let askedAt: number | undefined;
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
      process.on(signal, () => {
        askedAt ??= performance.now();
        if (performance.now() - askedAt > sameWishMs) process.exit(1);
        resolve(signal);
      });
    }
  });
}
