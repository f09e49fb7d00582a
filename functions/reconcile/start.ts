import { type Consumer, createConsumer } from "#shared/jobs/consumer.ts";
import type { Backoff } from "#shared/jobs/outcome.ts";
import type { QueueRef } from "#shared/jobs/queue-name.ts";
import type { JobReport } from "#shared/jobs/run-job.ts";
import type { ProviderEntry } from "#shared/provider/config.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import type { Logger } from "#shared/telemetry/logger.ts";
import type { ReconcileSettings } from "./config.ts";
import { type ReconcileDeps, reconcile } from "./reconcile.ts";

export interface StartReconcileDeps extends Omit<ReconcileDeps, "pendingPollMs" | "monotonicMs" | "now"> {
  settings: ReconcileSettings;
  redis: RedisClient;
  log: Logger;
  onOutcome: (report: JobReport) => void;
  /** Tests set the clock and shorten the waits. */
  now?: () => Date;
  backoff?: Backoff;
}

/** A configured provider, and how many of its Proxies one process may reconcile at once. */
export type FollowedProvider = Pick<ProviderEntry, "name" | "concurrency">;

/** The first wait is long enough that a failing Proxy runs at most 5 times in its first 10 s, finalizer and intent included. */
const backoffBaseMs = 4_000;
const backoffMaxMs = 300_000;

/** Consumes one queue per configured provider, and the one of Proxies whose provider is not configured. */
export class ReconcileConsumers {
  readonly #deps: StartReconcileDeps;
  readonly #consumers = new Map<string, Consumer>();
  readonly #unconfigured: Consumer;

  constructor(deps: StartReconcileDeps) {
    this.#deps = deps;
    this.#unconfigured = this.#consume({ fn: "reconcile" }, deps.settings.RECONCILE_CONCURRENCY);
  }

  /**
   * Takes jobs of exactly these providers from now on, of each as many at once as it allows, but never more than the
   * process does. Resolves once the queues of the others are left.
   */
  async follow(providers: readonly FollowedProvider[]): Promise<void> {
    const most = this.#deps.settings.RECONCILE_CONCURRENCY;
    for (const { name, concurrency: allowed } of providers) {
      const concurrency = Math.min(allowed, most);
      const running = this.#consumers.get(name);
      if (running === undefined)
        this.#consumers.set(name, this.#consume({ fn: "reconcile", provider: name }, concurrency));
      else running.setConcurrency(concurrency);
    }
    const gone = [...this.#consumers].filter(([name]) => !providers.some((provider) => provider.name === name));
    for (const [name] of gone) this.#consumers.delete(name);
    await Promise.all(gone.map(([, consumer]) => consumer.close()));
  }

  /** Runs that are under way are cut off and their keys put back. */
  async stop(): Promise<void> {
    await Promise.all([this.#unconfigured, ...this.#consumers.values()].map((consumer) => consumer.close()));
    this.#consumers.clear();
  }

  #consume(queue: QueueRef, concurrency: number): Consumer {
    const { settings, redis, log, onOutcome } = this.#deps;
    const deps: ReconcileDeps = {
      ...this.#deps,
      pendingPollMs: settings.PENDING_POLL_SECONDS * 1000,
      monotonicMs: () => performance.now(),
      now: this.#deps.now ?? (() => new Date()),
    };
    return createConsumer({
      redis,
      queue,
      concurrency,
      handler: (run) => reconcile(run, deps),
      backoff: this.#deps.backoff ?? backoffOf(settings),
      log,
      onOutcome,
    });
  }
}

function backoffOf(settings: ReconcileSettings): Backoff {
  return {
    baseMs: backoffBaseMs,
    maxMs: backoffMaxMs,
    slowMs: settings.QUOTA_RETRY_SECONDS * 1000,
    permanentMs: settings.PERMANENT_RETRY_SECONDS * 1000,
  };
}
