import { onTestFinished, vi } from "vitest";
import { ReconcileConsumers } from "#functions/reconcile/start.ts";
import { type ProxyHandlers, Watcher } from "#functions/watcher/watcher.ts";
import { ClusterConnection } from "#shared/cluster/connection.ts";
import { EventRecorder } from "#shared/cluster/events.ts";
import { loadInstallation } from "#shared/cluster/installation.ts";
import { ProxyClient } from "#shared/cluster/proxies.ts";
import { SecretReader } from "#shared/cluster/secrets.ts";
import { watchProxies } from "#shared/cluster/watch-proxies.ts";
import { Fleet } from "#shared/fleet/fleet.ts";
import type { JobReport } from "#shared/jobs/consumer.ts";
import type { Backoff } from "#shared/jobs/outcome.ts";
import { createProducer } from "#shared/jobs/producer.ts";
import { connectRedis } from "#shared/redis/connect.ts";
import { createLogger } from "#shared/telemetry/logger.ts";
import type { MemoryProvider } from "#test/fakes/memory-provider.ts";
import { TestApi } from "#test/kubernetes-api.ts";
import { startRedis } from "#test/redis.ts";
import { type Around, aroundFleet, aroundProvider, aroundProxies } from "./outside-calls.ts";
import { User } from "./user.ts";

export interface WorldOptions {
  /** What the providers file says at first. */
  providers?: MemoryProvider[];
  /** Seldom by default, so that nothing works only because of it. */
  resyncSeconds?: number;
  /** Short by default; "real": as in production. */
  backoff?: Backoff | "real";
  /** Kubeconfig of the API that takes the events; the world's own by default. */
  eventsKubeconfig?: string;
}

const shortBackoff: Backoff = { baseMs: 20, maxMs: 200, slowMs: 200, permanentMs: 60_000 };
const log = createLogger({ levels: { level: "silent", components: {} }, pretty: false });

/** Ends with the test, the last one first. */
function endsWithTest<T>(part: T, end: (part: T) => unknown): T {
  onTestFinished(async () => {
    await end(part);
  });
  return part;
}

export type World = Awaited<ReturnType<typeof startWorld>>;

/**
 * Watcher and reconcile as in one process, on a Redis and a Kubernetes API of the test's own; the providers alone are
 * fakes. All ends with the test.
 */
export async function startWorld(options: WorldOptions = {}) {
  const server = endsWithTest(await startRedis(), (part) => part.stop());
  const api = endsWithTest(await TestApi.start(), (part) => part.stop());
  const connection = connect(api.kubeconfigFile);
  const eventsConnection = options.eventsKubeconfig === undefined ? connection : connect(options.eventsKubeconfig);
  const redis = endsWithTest(
    connectRedis({ url: server.url, name: "world", whenDown: "wait", onError: () => undefined }),
    (part) => part.disconnect(),
  );
  const producer = endsWithTest(createProducer({ redis, log }), (part) => part.close());
  const installation = await loadInstallation(
    { connection, namespace: "default", releaseName: "test" },
    { signal: AbortSignal.timeout(10_000) },
  );
  const fleet = new Fleet({ redis });
  const proxies = new ProxyClient({ connection });
  const events = new EventRecorder({ connection: eventsConnection, log });
  // Cut off rather than waited for: a test may have made its server hang.
  endsWithTest(events, async (part) => {
    await eventsConnection.close();
    await part.close();
  });
  const user = new User({ api, proxies, redis, fleet, producer });
  const reports: JobReport[] = [];
  let live = new Map<string, MemoryProvider>();
  let aheadMs = 0;
  let hook: Around = (_uid, _what, call) => call();
  const around: Around = (uid, what, call) => hook(uid, what, call);

  const consumers = new ReconcileConsumers({
    redis,
    log,
    installation,
    events,
    proxies: aroundProxies(proxies, around),
    fleet: aroundFleet(fleet, around),
    secrets: new SecretReader({ connection }),
    provider: (name) => {
      const provider = live.get(name);
      return provider && aroundProvider(provider, around);
    },
    handOver: (queue, key, delayMs) => producer.enqueue(queue, key, { delayMs: Math.min(delayMs, 50) }),
    onGone: () => undefined,
    onOutcome: (report) => reports.push(report),
    settings: {
      RECONCILE_CONCURRENCY: 10,
      PENDING_POLL_SECONDS: 0.02,
      QUOTA_RETRY_SECONDS: 1,
      PERMANENT_RETRY_SECONDS: 3600,
    },
    now: () => new Date(Date.now() + aheadMs),
    ...(options.backoff === "real" ? {} : { backoff: options.backoff ?? shortBackoff }),
  });
  endsWithTest(consumers, (part) => part.stop());

  const watcher = new Watcher({
    settings: { RESYNC_SECONDS: options.resyncSeconds ?? 600 },
    producer,
    fleet,
    sweepStuckKeys: () => Promise.resolve(0),
    watchProxies: (handlers: ProxyHandlers, signal) =>
      watchProxies({
        connection,
        namespaces: "*",
        signal,
        onSet: (proxy) => {
          user.saw(proxy);
          return handlers.onSet(proxy);
        },
        onGone: (key) => {
          user.sawGone(key);
          return handlers.onGone(key);
        },
        onSynced: handlers.onSynced,
        onMissed: () => undefined,
        onUnreadable: () => undefined,
        onFailure: () => undefined,
      }),
    log,
  });

  /** The providers file now says exactly this. */
  const configure = async (...providers: MemoryProvider[]): Promise<void> => {
    const next = new Map(providers.map((provider) => [provider.name, provider]));
    const touched = [...new Set([...live.keys(), ...next.keys()])].filter((name) => live.get(name) !== next.get(name));
    live = next;
    await consumers.follow([...next.keys()]);
    await watcher.setProviders([...next.keys()], touched);
  };
  await configure(...(options.providers ?? []));
  watcher.start();
  endsWithTest(watcher, (part) => part.stop());
  await vi.waitFor(() => {
    if (!watcher.synced) throw new Error("the watcher has not listed the Proxies yet");
  });

  return {
    server,
    api,
    redis,
    fleet,
    user,
    events,
    installation,
    reports,
    configure,
    /** From now on every outside call of reconcile goes through this. */
    intercept: (next: Around): void => {
      hook = next;
    },
    /** Moves the clock of reconcile forward. */
    advance: (ms: number): void => {
      aheadMs += ms;
    },
  };
}

function connect(kubeconfigFile: string): ClusterConnection {
  return endsWithTest(ClusterConnection.load({ kubeconfigFile, userAgent: "lifecycle-test" }), (part) => part.close());
}
