import { Failure } from "#shared/errors/failure.ts";

/**
 * The time in which this process leads. It ends `validMs` after the last renewal was begun: whoever waits for the Lease
 * waits longer than that, so never do two lead at once.
 */
export class Leadership {
  readonly #ended = new AbortController();
  readonly #validMs: number;
  readonly #monotonicMs: () => number;
  #renewedAt: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: { validMs: number; renewedAt: number; monotonicMs: () => number }) {
    this.#validMs = deps.validMs;
    this.#monotonicMs = deps.monotonicMs;
    this.#renewedAt = deps.renewedAt;
    this.#arm();
  }

  /** Fires when this process leads no longer; its reason is the Failure that `check` throws. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** How much time is left without another renewal. */
  get leftMs(): number {
    return this.#renewedAt + this.#validMs - this.#monotonicMs();
  }

  /**
   * Throws once it leads no longer. To be called right before whatever only the leader may do: a process that stood
   * still for a while wakes up in the middle of its work, before any timer fires.
   */
  check(): void {
    if (this.leftMs <= 0) this.end("the Lease was not renewed in time");
    this.#ended.signal.throwIfAborted();
  }

  /** `at`: when the renewal was begun, by the monotonic clock. */
  renewed(at: number): void {
    this.#renewedAt = at;
    this.#arm();
  }

  end(why: string): void {
    clearTimeout(this.#timer);
    this.#ended.abort(new Failure({ class: "Transient", code: "NotLeading", message: why, op: "lead" }));
  }

  #arm(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.end("the Lease was not renewed in time"), Math.max(0, this.leftMs));
  }
}
