import { Failure } from "#shared/errors/failure.ts";
import type { Call } from "#shared/provider/contract.ts";

export type Operation = "place" | "create" | "get" | "delete" | "list";
type When = "before" | "after";

/** Makes the calls of a fake fail or hang, and remembers them. */
export class Faults {
  /** Every call in order; `target` is the instance name or provider id. */
  readonly calls: { op: Operation; target: string }[] = [];
  readonly #provider: string;
  #failures: { op: Operation; failure: Failure; when: When }[] = [];
  #holds: { op: Operation; when: When; released: Promise<void> }[] = [];
  #closed = false;

  constructor(provider: string) {
    this.#provider = provider;
  }

  failNext(op: Operation, failure: Failure, when: When): void {
    this.#failures.push({ op, failure, when });
  }

  /** Calls of `op` hang until the returned function is called; "after": their effect has already happened. */
  hold(op: Operation, when: When = "before"): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    const hold = { op, when, released: promise };
    this.#holds.push(hold);
    return () => {
      this.#holds = this.#holds.filter((one) => one !== hold);
      resolve();
    };
  }

  count(op: Operation): number {
    return this.calls.filter((call) => call.op === op).length;
  }

  close(): void {
    this.#closed = true;
  }

  async run<T>(op: Operation, target: string, call: Call, body: () => Promise<T>): Promise<T> {
    this.calls.push({ op, target });
    if (this.#closed) throw this.#transient("ProviderClosed", op, "the provider was closed");
    await this.#gate(op, "before", call);
    const result = await body();
    await this.#gate(op, "after", call);
    return result;
  }

  async #gate(op: Operation, when: When, call: Call): Promise<void> {
    if (call.signal.aborted) throw this.#aborted(op, when);
    const next = this.#failures.find((one) => one.op === op && one.when === when);
    if (next !== undefined) {
      this.#failures = this.#failures.filter((one) => one !== next);
      throw next.failure;
    }
    const holds = this.#holds.filter((one) => one.op === op && one.when === when);
    if (holds.length === 0) return;
    const { promise: fired, resolve } = Promise.withResolvers<"aborted">();
    const onAbort = (): void => resolve("aborted");
    call.signal.addEventListener("abort", onAbort, { once: true });
    const outcome = await Promise.race([Promise.all(holds.map((hold) => hold.released)), fired]);
    call.signal.removeEventListener("abort", onAbort);
    if (outcome === "aborted") throw this.#aborted(op, when);
  }

  #aborted(op: Operation, when: When): Failure {
    const ambiguous = when === "after" && (op === "create" || op === "delete");
    return this.#transient("Timeout", op, `${op} was cut off`, ambiguous);
  }

  #transient(code: string, op: Operation, message: string, ambiguous = false): Failure {
    return new Failure({ class: "Transient", code, op, provider: this.#provider, message, ambiguous });
  }
}
