/** Ends one watch: when nothing arrives for a while (`idle`), or when its time is up (`end`). */
export class WatchLimit {
  readonly #controller = new AbortController();
  readonly #idleMs: number;
  readonly #startedAt = performance.now();
  #idleTimer: NodeJS.Timeout | undefined;
  #endTimer: NodeJS.Timeout | undefined;
  #endsAt = Number.POSITIVE_INFINITY;
  reached: "idle" | "end" | undefined;

  constructor(idleMs: number) {
    this.#idleMs = idleMs;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get ageMs(): number {
    return performance.now() - this.#startedAt;
  }

  /** The earliest of all ends counts. */
  endIn(ms: number): void {
    const at = performance.now() + ms;
    if (at >= this.#endsAt) return;
    this.#endsAt = at;
    clearTimeout(this.#endTimer);
    this.#endTimer = setTimeout(() => this.#reach("end"), Math.max(0, ms));
  }

  /** The same chunks. A consumer that takes its time with one is not idleness. */
  async *guard(body: AsyncIterable<unknown>): AsyncGenerator<unknown, void> {
    this.#wind();
    for await (const chunk of body) {
      clearTimeout(this.#idleTimer);
      yield chunk;
      this.#wind();
    }
  }

  /** Leaves no timer. */
  release(): void {
    clearTimeout(this.#idleTimer);
    clearTimeout(this.#endTimer);
  }

  #wind(): void {
    this.#idleTimer = setTimeout(() => this.#reach("idle"), this.#idleMs);
  }

  #reach(what: "idle" | "end"): void {
    this.reached ??= what;
    this.#controller.abort();
  }
}
