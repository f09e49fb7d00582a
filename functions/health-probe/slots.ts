/** How many probes are under way, and how many more each provider may start. */
export class Slots {
  readonly #total: number;
  readonly #perProvider: number;
  readonly #used = new Map<string, number>();
  #busy = 0;

  /** One provider gets a quarter at most, so that one whose proxies hang leaves the others room; at least one. */
  constructor(total: number) {
    this.#total = total;
    this.#perProvider = Math.max(1, Math.floor(total / 4));
  }

  get free(): number {
    return this.#total - this.#busy;
  }

  /** How many more this provider may start now. */
  room(provider: string): number {
    return Math.min(this.free, this.#perProvider - (this.#used.get(provider) ?? 0));
  }

  take(provider: string): void {
    this.#busy += 1;
    this.#used.set(provider, (this.#used.get(provider) ?? 0) + 1);
  }

  release(provider: string): void {
    this.#busy -= 1;
    const left = (this.#used.get(provider) ?? 0) - 1;
    if (left > 0) this.#used.set(provider, left);
    else this.#used.delete(provider);
  }
}

/** The providers in order, beginning after the one that was served last: each gets its turn. */
export function inTurn(providers: readonly string[], lastServed: string): string[] {
  const sorted = providers.toSorted();
  return [...sorted.filter((each) => each > lastServed), ...sorted.filter((each) => each <= lastServed)];
}
