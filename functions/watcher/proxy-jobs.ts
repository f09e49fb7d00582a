import type { Fleet } from "#shared/fleet/fleet.ts";
import type { EnqueueItem, Producer } from "#shared/jobs/producer.ts";
import { type QueueRef, reconcileQueue } from "#shared/jobs/queue-name.ts";
import { type Proxy, proxyKey } from "#shared/model/proxy.ts";
import type { Phase } from "#shared/model/proxy-status.ts";
import { KnownProxies } from "./known-proxies.ts";
import { isSettled } from "./settled.ts";

export interface ProxyJobsDeps {
  producer: Pick<Producer, "enqueue" | "enqueueMany">;
  fleet: Pick<Fleet, "names">;
  /** Configured providers as this process knows them. */
  providerNames: () => readonly string[];
  /** From 0 to below 1. */
  random?: () => number;
}

/** Turns what happens to Proxies into reconcile jobs. */
export class ProxyJobs {
  readonly #deps: ProxyJobsDeps;
  readonly #known = new KnownProxies();

  constructor(deps: ProxyJobsDeps) {
    this.#deps = deps;
  }

  /**
   * A Proxy was added or changed. Rejects when the job could not be enqueued; it is then seen as new again.
   * `firstList`: it is only new to this process. One that looks settled then waits its turn: a watcher that takes over
   * must not make thousands of runs at once of what another one has long done.
   */
  async seen(proxy: Proxy, { firstList = false } = {}): Promise<void> {
    const key = proxyKey(proxy);
    if (!this.#known.see(proxy)) return;
    const { random = Math.random } = this.#deps;
    await this.#enqueue(key, proxy.spec.provider, firstList && isSettled(proxy) ? 1 + random() * settledSpreadMs : 0);
  }

  /** A Secret came, changed or went: whoever names it is looked at. */
  async secretTouched(secret: string): Promise<void> {
    await this.#enqueueAll(this.#known.keysNaming(secret).map((key) => ({ key })));
  }

  /** A Proxy is gone: one more run takes it out of the registry. */
  async gone(key: string): Promise<void> {
    const known = this.#known.get(key);
    if (known === undefined) return;
    // Forgotten only once the job is there: when that fails, the watch tells it again.
    await this.#enqueue(key, known.provider);
    this.#known.forget(key);
  }

  /**
   * The Proxies of these providers are looked at: their configuration came, went or changed. Now, and once more when
   * every process has read the file: one that had not yet would pass the key on to a queue that is then left.
   */
  async providersChanged(names: readonly string[]): Promise<void> {
    const keys = this.#known.keys().filter((key) => names.includes(this.#known.get(key)?.provider ?? ""));
    await this.#enqueueAll(keys.map((key) => ({ key })));
    await this.#enqueueAll(keys.map((key) => ({ key, delayMs: everyoneKnowsMs })));
  }

  /**
   * Every Proxy once within `spreadMs`, and each registry entry that no Proxy owns. A retry that waits stays where it
   * is: what was refused for good would otherwise be asked again with every resync.
   */
  async resync(spreadMs: number): Promise<void> {
    const keys = this.#known.keys();
    await this.#enqueueAll(
      keys.map((key, index) => ({
        key,
        delayMs: 1 + Math.floor((index / keys.length) * spreadMs),
        givesWay: true,
      })),
    );
    const unowned = [...(await this.#deps.fleet.names())].filter((key) => this.#known.get(key) === undefined);
    await this.#deps.producer.enqueueMany(
      unconfigured,
      unowned.map((key) => ({ key })),
    );
  }

  countByPhase(): Map<Phase, number> {
    return this.#known.countByPhase();
  }

  async #enqueue(key: string, provider: string, delayMs = 0): Promise<void> {
    try {
      await this.#deps.producer.enqueue(this.#queueOf(provider), key, { delayMs: Math.floor(delayMs) });
    } catch (error) {
      this.#known.doubt(key);
      throw error;
    }
  }

  async #enqueueAll(items: readonly EnqueueItem[]): Promise<void> {
    const byProvider = Map.groupBy(items, ({ key }) => this.#known.get(key)?.provider ?? "");
    for (const [provider, batch] of byProvider) await this.#deps.producer.enqueueMany(this.#queueOf(provider), batch);
  }

  #queueOf(provider: string): QueueRef {
    return reconcileQueue(provider, this.#deps.providerNames().includes(provider));
  }
}

/** Twice the time in which a process looks at the providers file. */
const everyoneKnowsMs = 10_000;

/** In this time every settled Proxy was looked at once after another watcher took over. */
const settledSpreadMs = 30_000;

const unconfigured: QueueRef = { fn: "reconcile" };
