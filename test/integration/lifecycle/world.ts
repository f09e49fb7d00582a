import { vi } from "vitest";
import { ReconcileConsumers } from "#functions/reconcile/start.ts";
import { type ProxyHandlers, Watcher } from "#functions/watcher/watcher.ts";
import { SecretReader } from "#shared/cluster/secrets.ts";
import { watchProxies } from "#shared/cluster/watch-proxies.ts";
import { type SecretName, watchSecrets } from "#shared/cluster/watch-secrets.ts";
import type { JobReport } from "#shared/jobs/consumer.ts";
import type { Backoff } from "#shared/jobs/outcome.ts";
import type { Provider } from "#shared/provider/contract.ts";
import { type Around, aroundFleet, aroundProvider, aroundProxies } from "./outside-calls.ts";
import { endsWithTest, log, type Surroundings, startSurroundings } from "./surroundings.ts";
import { User } from "./user.ts";

export interface WorldOptions {
  /** What the providers file says at first. */
  providers?: Provider[];
  /** Seldom by default, so that nothing works only because of it. */
  resyncSeconds?: number;
  /** Short by default; "real": as in production. */
  backoff?: "short" | "real";
  /** Kubeconfig of the API that takes the events; the world's own by default. */
  eventsKubeconfig?: string;
}

const shortBackoff: Backoff = { baseMs: 20, maxMs: 200, slowMs: 200, permanentMs: 60_000 };

/** What a test can turn. */
interface Knobs {
  providers: Map<string, Provider>;
  aheadMs: number;
  around: Around;
  reports: JobReport[];
}

export type World = Awaited<ReturnType<typeof startWorld>>;

/**
 * Watcher and reconcile as in one process, on a Redis and a Kubernetes API of the test's own; the providers alone are
 * fakes. All ends with the test.
 */
export async function startWorld(options: WorldOptions = {}) {
  const { eventsKubeconfig } = options;
  const around = await startSurroundings(eventsKubeconfig === undefined ? {} : { eventsKubeconfig });
  const user = new User(around);
  const knobs: Knobs = { providers: new Map(), aheadMs: 0, around: (_uid, _what, call) => call(), reports: [] };
  const consumers = startConsumers(around, knobs, options.backoff ?? "short");
  const watcher = makeWatcher(around, user, options.resyncSeconds ?? 600);
  /** The providers file now says exactly this. */
  const configure = async (...providers: Provider[]): Promise<void> => {
    const before = knobs.providers;
    const next = new Map(providers.map((provider) => [provider.name, provider]));
    const names = new Set([...before.keys(), ...next.keys()]);
    knobs.providers = next;
    await consumers.follow([...next.keys()].map((name) => ({ name, concurrency: 10 })));
    const touched = [...names].filter((name) => before.get(name) !== next.get(name));
    await watcher.setProviders([...next.keys()], touched);
  };
  await configure(...(options.providers ?? []));
  watcher.start();
  endsWithTest(watcher, (part) => part.stop());
  await vi.waitFor(() => {
    if (!watcher.synced) throw new Error("the watcher has not listed the Proxies yet");
  });
  return {
    ...around,
    user,
    configure,
    /** How each run ended, in order. */
    reports: knobs.reports,
    /** From now on every outside call of reconcile goes through this. */
    intercept: (next: Around): void => {
      knobs.around = next;
    },
    /** Moves the clock of reconcile forward. */
    advance: (ms: number): void => {
      knobs.aheadMs += ms;
    },
  };
}

function startConsumers(
  { redis, producer, installation, fleet, proxies, events, connection }: Surroundings,
  knobs: Knobs,
  backoff: "short" | "real",
): ReconcileConsumers {
  const around: Around = (uid, what, call) => knobs.around(uid, what, call);
  const consumers = new ReconcileConsumers({
    redis,
    log,
    installation,
    events,
    proxies: aroundProxies(proxies, around),
    fleet: aroundFleet(fleet, around),
    secrets: new SecretReader({ connection }),
    provider: (name) => {
      const provider = knobs.providers.get(name);
      return provider && aroundProvider(provider, around);
    },
    handOver: (queue, key, delayMs) => producer.enqueue(queue, key, { delayMs }),
    onGone: () => undefined,
    onOutcome: (report) => knobs.reports.push(report),
    settings: {
      RECONCILE_CONCURRENCY: 10,
      PENDING_POLL_SECONDS: 0.02,
      QUOTA_RETRY_SECONDS: 1,
      PERMANENT_RETRY_SECONDS: 3600,
    },
    now: () => new Date(Date.now() + knobs.aheadMs),
    ...(backoff === "real" ? {} : { backoff: shortBackoff }),
  });
  return endsWithTest(consumers, (part) => part.stop());
}

function makeWatcher({ api, connection, producer, fleet }: Surroundings, user: User, resyncSeconds: number): Watcher {
  const ignore = (): void => undefined;
  const watch = (handlers: ProxyHandlers, signal: AbortSignal): Promise<void> =>
    watchProxies({
      connection,
      namespaces: [api.namespace],
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
      onMissed: ignore,
      onUnreadable: ignore,
      onFailure: ignore,
    });
  return new Watcher({
    settings: { RESYNC_SECONDS: resyncSeconds },
    producer,
    fleet,
    sweepStuckKeys: () => Promise.resolve(0),
    watchProxies: watch,
    watchSecrets: ({ onTouched, onSynced }, signal) => {
      const touched = ({ namespace, name }: SecretName) => onTouched(`${namespace}/${name}`);
      const quiet = { onMissed: ignore, onFailure: ignore };
      const where = { connection, namespaces: [api.namespace], signal };
      return watchSecrets({ ...where, ...quiet, onSynced, onChanged: touched, onGone: touched });
    },
    log,
  });
}
