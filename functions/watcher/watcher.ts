import { randomBytes } from "node:crypto";
import type { Fleet } from "#shared/fleet/fleet.ts";
import type { Producer } from "#shared/jobs/producer.ts";
import type { Proxy } from "#shared/model/proxy.ts";
import type { Phase } from "#shared/model/proxy-status.ts";
import type { Logger } from "#shared/telemetry/logger.ts";
import type { WatcherSettings } from "./config.ts";
import { every } from "./every.ts";
import { ProxyJobs } from "./proxy-jobs.ts";

export interface WatcherDeps {
  settings: Pick<WatcherSettings, "RESYNC_SECONDS">;
  producer: Pick<Producer, "enqueue" | "enqueueMany">;
  fleet: Pick<Fleet, "names" | "epoch" | "beginEpoch" | "finishEpoch">;
  /** Frees keys that no event can start any more; to be called now and then. */
  sweepStuckKeys: () => Promise<number>;
  /** Lists and watches Proxies until the signal fires; must not end before. */
  watchProxies: (handlers: ProxyHandlers, signal: AbortSignal) => Promise<void>;
  /** The same for Secrets, of which names are all that is told. */
  watchSecrets: (handlers: SecretHandlers, signal: AbortSignal) => Promise<void>;
  log: Logger;
}

export interface ProxyHandlers {
  onSet: (proxy: Proxy) => Promise<void>;
  onGone: (key: string) => Promise<void>;
  /** The first list is through. */
  onSynced: () => void;
}

export interface SecretHandlers {
  /** `<namespace>/<name>` of one that came, changed or went. */
  onTouched: (secret: string) => Promise<void>;
  /** The first list is through. */
  onSynced: () => void;
}

const epochCheckMs = 5_000;
const reapMs = 1_000;
const sweepMs = 60_000;
const providersRetryMs = 1_000;

/** Turns Kubernetes events and timers into jobs. Everything that it runs ends when it stops. */
export class Watcher {
  readonly #deps: WatcherDeps;
  readonly #jobs: ProxyJobs;
  readonly #stop = new AbortController();
  readonly #firstList = Promise.withResolvers<void>();
  readonly #touched = new Set<string>();
  #providers: readonly string[] = [];
  #synced = false;
  #running: Promise<unknown> = Promise.resolve();

  constructor(deps: WatcherDeps) {
    this.#deps = deps;
    this.#jobs = new ProxyJobs({ ...deps, providerNames: () => this.#providers });
  }

  /** Whether every Proxy was seen once. */
  get synced(): boolean {
    return this.#synced;
  }

  countByPhase(): Map<Phase, number> {
    return this.#jobs.countByPhase();
  }

  /**
   * The providers file was read: `touched` names those that were added, removed or changed. Never rejects: what Redis
   * would not take is kept and tried again, since the file tells of a change only once.
   */
  async setProviders(names: readonly string[], touched: readonly string[]): Promise<void> {
    this.#providers = names;
    for (const name of touched) this.#touched.add(name);
    await this.#lookAtTouched().catch((error: unknown) =>
      this.#deps.log.warn({ err: error }, "could not enqueue the Proxies of a changed provider; it is tried again"),
    );
  }

  start(): void {
    const { settings, producer, log } = this.#deps;
    const { signal } = this.#stop;
    const timer = (name: string, intervalMs: number, work: () => Promise<unknown>): Promise<void> =>
      every({ name, intervalMs, signal, log }, work);
    const resyncMs = settings.RESYNC_SECONDS * 1000;
    this.#running = Promise.all([
      this.#watch(signal),
      this.#watchSecrets(signal),
      timer("reap", reapMs, () => producer.enqueue({ fn: "lease" }, "reap")),
      timer("stuck keys", sweepMs, () => this.#deps.sweepStuckKeys()),
      timer("changed providers", providersRetryMs, () => this.#lookAtTouched()),
      // Before the first list is through, every registered name would look like one that no Proxy owns.
      this.#firstList.promise.then(() =>
        Promise.all([
          timer("epoch", epochCheckMs, () => this.#checkEpoch()),
          timer("resync", resyncMs, () => this.#jobs.resync(resyncMs)),
        ]),
      ),
    ]);
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error("the watcher stops"));
    this.#firstList.resolve(); // the timers that wait for it end at once
    await this.#running;
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const handlers: ProxyHandlers = {
      onSet: (proxy) => this.#jobs.seen(proxy, { firstList: !this.#synced }),
      onGone: (key) => this.#jobs.gone(key),
      onSynced: () => {
        this.#synced = true;
        this.#firstList.resolve();
      },
    };
    await this.#deps.watchProxies(handlers, signal);
  }

  async #watchSecrets(signal: AbortSignal): Promise<void> {
    // Those of the first list are no news: each Proxy gets its job from the first list of Proxies.
    let synced = false;
    const handlers: SecretHandlers = {
      onTouched: async (secret) => {
        if (synced) await this.#jobs.secretTouched(secret);
      },
      onSynced: () => {
        synced = true;
      },
    };
    await this.#deps.watchSecrets(handlers, signal);
  }

  async #lookAtTouched(): Promise<void> {
    const names = [...this.#touched];
    // Taken out before, not after: one that is touched again meanwhile must be looked at again.
    this.#touched.clear();
    try {
      await this.#jobs.providersChanged(names);
    } catch (error) {
      for (const name of names) this.#touched.add(name);
      throw error;
    }
  }

  /**
   * An absent epoch means that Redis was emptied: everything is enqueued at once, which fills it again. The epoch is
   * written after that, so that a failure on the way is repeated, and only if Redis was not emptied once more.
   */
  async #checkEpoch(): Promise<void> {
    const { fleet, log } = this.#deps;
    if ((await fleet.epoch()) !== null) return;
    log.warn("Redis has no epoch: it is new or was emptied; every Proxy is looked at now");
    const id = randomBytes(8).toString("hex");
    await fleet.beginEpoch(id);
    await this.#jobs.resync(0);
    if (!(await fleet.finishEpoch(id))) log.warn("Redis was emptied while it was being filled; it is filled once more");
  }
}
