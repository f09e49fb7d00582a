/** Cancellation and deadline of one call to the API server, retries included. */
export interface ClusterCall {
  signal: AbortSignal;
  /** Milliseconds; the connection's default (15 s) when absent. */
  deadlineMs?: number | undefined;
}

/** One signal for work that ends at a deadline or when any of several signals fires. `release` leaves no timer, no listener. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #signals: readonly AbortSignal[];
  readonly #endsAt: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(signals: readonly AbortSignal[], ms: number) {
    this.#signals = signals;
    this.#endsAt = performance.now() + ms;
    const timedOut = () => this.#controller.abort(new DOMException(`no answer within ${ms} ms`, "TimeoutError"));
    this.#timer = setTimeout(timedOut, ms);
    for (const signal of signals) {
      if (signal.aborted) this.#aborted();
      signal.addEventListener("abort", this.#aborted);
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get remainingMs(): number {
    return this.#endsAt - performance.now();
  }

  /** From now on only the signals end the work: for a stream whose answer has begun. */
  lift(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  release(): void {
    this.lift();
    for (const signal of this.#signals) signal.removeEventListener("abort", this.#aborted);
  }

  readonly #aborted = (): void => {
    const reason: unknown = this.#signals.find((signal) => signal.aborted)?.reason;
    // A caller's own timeout keeps its name, so that it is reported as one.
    const timeout = reason instanceof Error && reason.name === "TimeoutError";
    const said = reason instanceof Error ? reason.message : "given up by the caller";
    this.#controller.abort(timeout ? reason : new DOMException(said, "AbortError"));
  };
}
