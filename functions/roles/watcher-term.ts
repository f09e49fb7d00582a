import { Watcher, type WatcherDeps } from "#functions/watcher/watcher.ts";
import { whileLeading } from "#functions/watcher/while-leading.ts";
import type { Leadership } from "#shared/cluster/leadership.ts";

/** The watcher of this process: one for each time that it leads, none in between. */
export class WatcherTerm {
  readonly #deps: WatcherDeps;
  #providers: readonly string[] = [];
  watcher: Watcher | undefined;

  constructor(deps: WatcherDeps) {
    this.#deps = deps;
  }

  async setProviders(names: readonly string[], touched: readonly string[]): Promise<void> {
    this.#providers = names;
    await this.watcher?.setProviders(names, touched);
  }

  /** Resolves once everything that the leader runs has ended. */
  async serve(leadership: Leadership): Promise<void> {
    const producer = whileLeading(this.#deps.producer, () => leadership.check());
    const watcher = new Watcher({ ...this.#deps, producer });
    this.watcher = watcher; // from now on it hears of a changed file by itself
    await watcher.setProviders(this.#providers, []);
    watcher.start();
    await aborted(leadership.signal);
    this.watcher = undefined;
    await watcher.stop();
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}
