import { setTimeout as sleep } from "node:timers/promises";
import { type Failure, toFailure } from "#shared/errors/failure.ts";
import type { LeaderLease, LeaseRecord } from "./leader-lease.ts";
import { Leadership } from "./leadership.ts";

interface ElectionTiming {
  /** How long a holder's word counts for the others, from when they first saw it. */
  durationMs: number;
  /** How long the holder leads without a renewal; the difference is what calls under way may still take. */
  validMs: number;
  /** Time between two looks, and between two renewals. */
  everyMs: number;
  /** A request that takes longer is given up: the next one may be quicker. */
  requestMs: number;
}

/** Those of client-go, but that it has no bound for one request. */
const usualTiming: ElectionTiming = { durationMs: 15_000, validMs: 10_000, everyMs: 2_000, requestMs: 4_000 };

export interface ElectionOptions {
  lease: Pick<LeaderLease, "read" | "write">;
  /**
   * Of this process. One that is started again under the same identity leads again at once, so the one before must be
   * dead: the name of a Pod is right.
   */
  identity: string;
  /** What only the leader does. Must end soon after the signal of the leadership fires. */
  lead: (leadership: Leadership) => Promise<void>;
  signal: AbortSignal;
  /** Somebody leads from now on; an empty holder: nobody. */
  onHolder: (holder: string) => void;
  onFailure: (failure: Failure) => void;
  timing?: Partial<ElectionTiming>;
  monotonicMs?: () => number;
}

/**
 * Leads whenever nobody else does, until the signal fires; then what it runs ends, and the Lease is given back.
 * Whether another's word is over is judged by our own clock, from when we first saw it: clocks may differ.
 */
export async function takePart(options: ElectionOptions): Promise<void> {
  const election = new Election(options);
  const { signal } = options;
  while (!signal.aborted) {
    await election.turn();
    await sleep(election.everyMs * (0.8 + 0.4 * Math.random()), undefined, { signal }).catch(() => undefined);
  }
}

class Election {
  readonly #options: ElectionOptions;
  readonly #timing: ElectionTiming;
  readonly #monotonicMs: () => number;
  #seen: LeaseRecord | undefined;
  #seenAt = 0;
  #holder: string | undefined;

  constructor(options: ElectionOptions) {
    this.#options = options;
    this.#timing = { ...usualTiming, ...options.timing };
    this.#monotonicMs = options.monotonicMs ?? (() => performance.now());
  }

  get everyMs(): number {
    return this.#timing.everyMs;
  }

  /** Looks at the Lease and, if it can be had, leads until that ends. */
  async turn(): Promise<void> {
    const { lease, signal, onFailure } = this.#options;
    try {
      this.#see(await lease.read({ signal, deadlineMs: this.#timing.requestMs }));
      if (!this.#canBeHad()) return;
      const begunAt = this.#monotonicMs();
      this.#see(await this.#write(this.#options.identity, this.#timing.requestMs));
      await this.#lead(begunAt);
    } catch (error) {
      if (!signal.aborted) onFailure(toFailure(error));
    }
  }

  #canBeHad(): boolean {
    const { identity } = this.#options;
    if (this.#seen === undefined || this.#seen.holder === "" || this.#seen.holder === identity) return true;
    return this.#monotonicMs() - this.#seenAt > this.#seen.durationMs;
  }

  async #lead(begunAt: number): Promise<void> {
    const { signal, lead } = this.#options;
    const leadership = new Leadership({
      validMs: this.#timing.validMs,
      renewedAt: begunAt,
      monotonicMs: this.#monotonicMs,
    });
    const stop = (): void => leadership.end("the process stops");
    signal.addEventListener("abort", stop);
    const renewing = this.#renew(leadership);
    try {
      await lead(leadership);
    } finally {
      // What the leader runs has ended, of itself or because it had to: only now may another one begin.
      leadership.end("its work has ended");
      signal.removeEventListener("abort", stop);
      await renewing;
      await this.#giveBack();
    }
  }

  /** Renews until the leadership ends; ends it when somebody else has the Lease. */
  async #renew(leadership: Leadership): Promise<void> {
    const { identity, onFailure } = this.#options;
    while (!leadership.signal.aborted) {
      await sleep(this.#timing.everyMs, undefined, { signal: leadership.signal }).catch(() => undefined);
      if (leadership.signal.aborted) return;
      const begunAt = this.#monotonicMs();
      try {
        this.#see(
          await this.#write(
            identity,
            Math.min(this.#timing.requestMs, Math.max(1, leadership.leftMs)),
            leadership.signal,
          ),
        );
        leadership.renewed(begunAt);
      } catch (error) {
        if (leadership.signal.aborted) return;
        onFailure(toFailure(error));
        await this.#lookAgain(leadership);
      }
    }
  }

  /** A renewal failed: its answer may be lost, or somebody may have taken the Lease. */
  async #lookAgain(leadership: Leadership): Promise<void> {
    try {
      this.#see(await this.#options.lease.read({ signal: leadership.signal, deadlineMs: this.#timing.requestMs }));
    } catch {
      return; // the failure before it was told; the time that is left decides
    }
    if (this.#seen?.holder !== this.#options.identity)
      leadership.end(`${this.#seen?.holder || "nobody"} has the Lease`);
  }

  async #giveBack(): Promise<void> {
    if (this.#seen?.holder !== this.#options.identity) return;
    try {
      // Not by the process's own signal, which has fired when it stops; the deadline ends it.
      this.#see(await this.#write("", this.#timing.requestMs, new AbortController().signal));
    } catch (error) {
      this.#options.onFailure(toFailure(error)); // the others wait until our word is over
    }
  }

  async #write(holder: string, deadlineMs: number, signal = this.#options.signal): Promise<LeaseRecord> {
    const record = { holder, durationMs: this.#timing.durationMs };
    return await this.#options.lease.write(record, this.#seen, { signal, deadlineMs });
  }

  #see(record: LeaseRecord | undefined): void {
    if (record?.resourceVersion !== this.#seen?.resourceVersion) this.#seenAt = this.#monotonicMs();
    this.#seen = record;
    const holder = record?.holder ?? "";
    if (holder !== this.#holder) this.#options.onHolder(holder);
    this.#holder = holder;
  }
}
