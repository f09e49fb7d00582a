import { HealthProbe, type HealthProbeDeps } from "#functions/health-probe/health-probe.ts";
import { ReconcileConsumers } from "#functions/reconcile/start.ts";
import { Watcher } from "#functions/watcher/watcher.ts";
import { ClusterConnection } from "#shared/cluster/connection.ts";
import { ProxyClient } from "#shared/cluster/proxies.ts";
import { SecretReader } from "#shared/cluster/secrets.ts";
import { watchProxies } from "#shared/cluster/watch-proxies.ts";
import { Fleet } from "#shared/fleet/fleet.ts";
import { ProbeSchedule } from "#shared/fleet/probe-schedule.ts";
import type { JobReport } from "#shared/jobs/consumer.ts";
import { createProducer } from "#shared/jobs/producer.ts";
import { RunningParts } from "#shared/process/stop.ts";
import { connectRedis } from "#shared/redis/connect.ts";
import { createLogger } from "#shared/telemetry/logger.ts";
import type { MemoryProvider } from "#test/fakes/memory-provider.ts";

export interface ControlPlaneOptions {
  redisUrl: string;
  kubeconfigFile: string;
  namespace: string;
  /** Configured from the start. */
  providers: MemoryProvider[];
}

/** Watcher, reconcile and health-probe of one process, on real Redis and the small API; only the backend is a fake. */
export class ControlPlane {
  readonly reports: JobReport[] = [];
  readonly events: string[] = [];
  readonly fleet: Fleet;
  /** Added to the clock of reconcile. */
  aheadMs = 0;
  readonly #parts = new RunningParts(silent);
  readonly #providers = new Map<string, MemoryProvider>();
  readonly #watcher: Watcher;
  readonly #consumers: ReconcileConsumers;

  constructor(options: ControlPlaneOptions) {
    const { redisUrl: url, kubeconfigFile, namespace } = options;
    const redis = connectRedis({ url, name: "test", whenDown: "wait", onError: () => undefined });
    this.#parts.add("redis", () => redis.disconnect());
    const connection = ClusterConnection.load({ kubeconfigFile, userAgent: "test" });
    this.#parts.add("connection", () => connection.close());
    const producer = createProducer({ redis });
    this.#parts.add("producer", () => producer.close());
    this.fleet = new Fleet({ redis });
    for (const provider of options.providers) this.#providers.set(provider.name, provider);
    this.#consumers = new ReconcileConsumers({
      settings: reconcileSettings,
      now: () => new Date(Date.now() + this.aheadMs),
      redis,
      log: silent,
      fleet: this.fleet,
      proxies: new ProxyClient({ connection }),
      secrets: new SecretReader({ connection }),
      installation: { id: "inst234567", hashKey: Buffer.from("key") },
      events: { record: ({ reason }) => void this.events.push(reason) },
      provider: (name) => this.#providers.get(name),
      handOver: (queue, key, delayMs) => producer.enqueue(queue, key, { delayMs }),
      onGone: () => undefined,
      onOutcome: (report) => void this.reports.push(report),
    });
    this.#parts.add("reconcile", () => this.#consumers.stop());
    const probes = new HealthProbe({
      schedule: new ProbeSchedule({ redis, onUnreadable: (error) => expectNoError(error) }),
      settings: { HEALTH_PROBE_CONCURRENCY: 20 },
      enqueueReconcile: (provider, key) => producer.enqueue({ fn: "reconcile", provider }, key),
      onProbe: () => undefined,
      log: silent,
      probe: ({ host }) => Promise.resolve(this.#answer(host)),
    });
    probes.start();
    this.#parts.add("probes", () => probes.stop());
    const watch = { connection, namespaces: [namespace], onMissed: () => undefined, onUnreadable: () => undefined };
    this.#watcher = new Watcher({
      settings: { RESYNC_SECONDS: 600 },
      producer,
      fleet: this.fleet,
      sweepStuckKeys: () => Promise.resolve(0),
      watchProxies: (handlers, signal) => watchProxies({ ...watch, ...handlers, signal, onFailure: () => undefined }),
      log: silent,
    });
  }

  async start(): Promise<void> {
    await this.#follow([]);
    this.#watcher.start();
    this.#parts.add("watcher", () => this.#watcher.stop());
  }

  /** The providers file now lists this one, too; or not any more. */
  async configure(provider: MemoryProvider): Promise<void> {
    this.#providers.set(provider.name, provider);
    await this.#follow([provider.name]);
  }

  async unconfigure(name: string): Promise<void> {
    this.#providers.delete(name);
    await this.#follow([name]);
  }

  async stop(): Promise<void> {
    await this.#parts.stopAll(10_000);
  }

  async #follow(touched: string[]): Promise<void> {
    const names = [...this.#providers.keys()];
    await this.#consumers.follow(names);
    await this.#watcher.setProviders(names, touched);
  }

  /** A proxy passes its probes for as long as its instance runs. */
  #answer(host: string): Awaited<ReturnType<NonNullable<HealthProbeDeps["probe"]>>> {
    const instances = [...this.#providers.values()].flatMap(({ backend }) => [...backend.instances.values()]);
    const ok = instances.some(({ ip, state }) => ip === host && state === "Running");
    return { ok, latencyMs: 1, reason: ok ? "Answered" : "ConnectRefused", message: ok ? "answers" : "refuses" };
  }
}

const silent = createLogger({ levels: { level: "silent", components: {} }, pretty: false });
const reconcileSettings = {
  RECONCILE_CONCURRENCY: 10,
  PENDING_POLL_SECONDS: 1,
  QUOTA_RETRY_SECONDS: 300,
  PERMANENT_RETRY_SECONDS: 3600,
};

function expectNoError(error: Error): never {
  throw error;
}
