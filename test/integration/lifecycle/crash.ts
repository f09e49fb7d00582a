import type { Around, OutsideCall } from "./outside-calls.ts";

/** How a call of a process that has died ends. */
class Died extends Error {
  override readonly name = "Died";
}

/** A moment in the life of a Proxy: right before or after the n-th call of a kind (from 1) takes effect. */
export interface CrashPoint {
  what: OutsideCall;
  nth: number;
  when: "before" | "after";
}

/**
 * The process dies at one point of a Proxy's life. From then on nothing of that run gets out; the next run is another
 * process's. Without a point it lives.
 */
export class Crash {
  /** Changing calls so far, in order. */
  readonly calls: OutsideCall[] = [];
  readonly #point: CrashPoint | undefined;
  readonly #onDeath: () => Promise<unknown>;
  #dead = false;
  #happened = false;

  /** `onDeath`: what else happens at that very moment. */
  constructor(point?: CrashPoint, onDeath: () => Promise<unknown> = () => Promise.resolve()) {
    this.#point = point;
    this.#onDeath = onDeath;
  }

  get happened(): boolean {
    return this.#happened;
  }

  async around<T>(what: OutsideCall, call: () => Promise<T>): Promise<T> {
    if (what === "read proxy")
      this.#dead = false; // the first call of every run
    else this.calls.push(what);
    const nth = this.calls.filter((each) => each === what).length;
    const isHere = !this.#happened && what === this.#point?.what && nth === this.#point.nth;
    if (this.#dead || (isHere && this.#point?.when === "before")) await this.#die(what);
    const answer = await call();
    if (isHere) await this.#die(what);
    return answer;
  }

  async #die(what: OutsideCall): Promise<never> {
    this.#dead = true;
    if (!this.#happened) await this.#onDeath();
    this.#happened = true;
    throw new Died(`the process is dead (${what})`);
  }
}

/** Sends the calls of each Proxy, by uid, through its own crash, and none before `begun`. */
export function aroundCrashes(crashes: ReadonlyMap<string, Crash>, begun: Promise<void>): Around {
  return async (uid, what, call) => {
    await begun;
    return await (crashes.get(uid)?.around(what, call) ?? call());
  };
}

/** Before and after each of these calls. */
export function crashPoints(calls: readonly OutsideCall[]): CrashPoint[] {
  return calls.flatMap((what, index) => {
    const nth = calls.slice(0, index + 1).filter((each) => each === what).length;
    return (["before", "after"] as const).map((when) => ({ what, nth, when }));
  });
}
