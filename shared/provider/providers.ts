import { Failure } from "#shared/errors/failure.ts";
import type { ProviderEntry } from "./config.ts";
import type { Provider } from "./contract.ts";
import { wrapCalls } from "./decorators/wrap.ts";

export interface ProviderSetDeps {
  create: (entry: ProviderEntry) => Provider;
  /** A provider that was removed or replaced could not be closed. Nobody waits for it any more. */
  onCloseError: (name: string, error: unknown) => void;
}

/** What an `apply` did, by configured name. */
export interface ProviderChanges {
  added: string[];
  changed: string[];
  removed: string[];
}

/** The live providers by configured name. They follow the providers file without a restart. */
export class ProviderSet {
  readonly #deps: ProviderSetDeps;
  #live = new Map<string, Live>();

  constructor(deps: ProviderSetDeps) {
    this.#deps = deps;
  }

  /** Undefined: not configured (any more). Ask again for every run; a provider kept from earlier may be closed. */
  get(name: string): Provider | undefined {
    return this.#live.get(name)?.provider;
  }

  /** Configuration of a provider. */
  entry(name: string): ProviderEntry | undefined {
    return this.#live.get(name)?.entry;
  }

  names(): string[] {
    return [...this.#live.keys()];
  }

  /**
   * Takes over a new configuration: an entry with the same revision keeps its instance, the others are built anew;
   * what is gone is closed once its running calls ended. Throws, with nothing changed, when one cannot be built.
   */
  apply(entries: ProviderEntry[]): ProviderChanges {
    const next = new Map(entries.map((entry) => [entry.name, this.#keepOrCreate(entry)]));
    const before = this.#live;
    this.#live = next;
    const names = [...next.keys()];
    const replaced = [...before].filter(([name, live]) => next.get(name)?.calls !== live.calls);
    for (const [name, live] of replaced) {
      live.calls.close().catch((error: unknown) => this.#deps.onCloseError(name, error));
    }
    return {
      added: names.filter((name) => !before.has(name)),
      changed: names.filter((name) => replaced.some(([other]) => other === name)),
      removed: [...before.keys()].filter((name) => !next.has(name)),
    };
  }

  /** Closes all, each after its running calls. */
  async close(): Promise<void> {
    const live = [...this.#live.values()];
    this.#live = new Map();
    await Promise.all(live.map(({ calls }) => calls.close()));
  }

  #keepOrCreate(entry: ProviderEntry): Live {
    const live = this.#live.get(entry.name);
    if (live?.entry.revision === entry.revision) return { ...live, entry };
    const provider = this.#deps.create(entry);
    const calls = new RunningCalls(provider);
    return { entry, calls, provider: calls.provider };
  }
}

interface Live {
  entry: ProviderEntry;
  provider: Provider;
  calls: RunningCalls;
}

/** Counts the running calls of a provider, so that it is closed only after the last one. */
class RunningCalls {
  readonly provider: Provider;
  readonly #inner: Provider;
  readonly #idle = Promise.withResolvers<void>();
  #running = 0;
  #closing = false;

  constructor(inner: Provider) {
    this.#inner = inner;
    this.provider = wrapCalls(inner, async ({ op }, call, invoke) => {
      if (this.#closing) throw closed(inner.name, op);
      this.#running += 1;
      try {
        return await invoke(call);
      } finally {
        this.#running -= 1;
        if (this.#closing && this.#running === 0) this.#idle.resolve();
      }
    });
  }

  /** Every call has a deadline, so the wait ends. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#running > 0) await this.#idle.promise;
    await this.#inner.close();
  }
}

/** Transient: a repeat asks the set again and gets the new instance, or none. */
function closed(provider: string, op: string): Failure {
  return new Failure({
    class: "Transient",
    code: "ProviderReplaced",
    scope: "provider",
    message: `${op}: the configuration of provider ${provider} has just changed`,
    provider,
    op,
  });
}
