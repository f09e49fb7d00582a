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
  settings: WatcherSettings;
  producer: Producer;
  fleet: Fleet;
  /** Frees keys that no event can start any more; to be called now and then. */
  sweepStuckKeys: () => Promise<number>;
  /** Lists and watches Proxies until the signal fires; must not end before. */
  watchProxies: (handlers: ProxyHandlers, signal: AbortSignal) => Promise<void>;
  log: Logger;
}

export interface ProxyHandlers {
  onSet: (proxy: Proxy) => Promise<void>;
  onGone: (key: string) => Promise<void>;
  /** The first list is through. */
  onSynced: () => void;
}

const epochCheckMs = 5_000;
const reapMs = 1_000;
const sweepMs = 60_000;

/** Turns Kubernetes events and timers into jobs. Everything that it runs ends when it stops. */
export class Watcher {
  readonly #deps: WatcherDeps;
  readonly #jobs: ProxyJobs;
  readonly #stop = new AbortController();
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

  /** The providers file was read: `touched` names those that were added, removed or changed. */
  async setProviders(names: readonly string[], touched: readonly string[]): Promise<void> {
    this.#providers = names;
    await this.#jobs.providersChanged(touched);
  }

  start(): void {
    const { settings, producer, log } = this.#deps;
    const { signal } = this.#stop;
    const timer = (name: string, intervalMs: number, work: () => Promise<unknown>): Promise<void> =>
      every({ name, intervalMs, signal, log }, work);
    const resyncMs = settings.RESYNC_SECONDS * 1000;
    this.#running = Promise.all([
      this.#watch(signal),
      timer("epoch", epochCheckMs, () => this.#checkEpoch()),
      timer("reap", reapMs, () => producer.enqueue({ fn: "lease" }, "reap")),
      timer("stuck keys", sweepMs, () => this.#deps.sweepStuckKeys()),
      timer("resync", resyncMs, () => this.#jobs.resync(resyncMs)),
    ]);
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error("the watcher stops"));
    await this.#running;
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const handlers: ProxyHandlers = {
      onSet: (proxy) => this.#jobs.seen(proxy),
      onGone: (key) => this.#jobs.gone(key),
      onSynced: () => {
        this.#synced = true;
      },
    };
    await this.#deps.watchProxies(handlers, signal);
  }

  /**
   * An absent epoch means that Redis was emptied: everything is enqueued at once, which fills it again. Only then is the
   * epoch written, so that a failure on the way is repeated.
   */
  async #checkEpoch(): Promise<void> {
    const { fleet, log } = this.#deps;
    if ((await fleet.epoch()) !== null) return;
    log.warn("Redis has no epoch: it is new or was emptied; every Proxy is looked at now");
    await this.#jobs.resync(0);
    await fleet.ensureEpoch(randomBytes(8).toString("hex"));
  }
}
