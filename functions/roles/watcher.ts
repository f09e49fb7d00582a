import { watcherSettings } from "#functions/watcher/config.ts";
import { type ProxyHandlers, Watcher } from "#functions/watcher/watcher.ts";
import type { ClusterConnection } from "#shared/cluster/connection.ts";
import { watchProxies } from "#shared/cluster/watch-proxies.ts";
import { Fleet } from "#shared/fleet/fleet.ts";
import { createProducer, type Producer } from "#shared/jobs/producer.ts";
import { listQueues, queueName } from "#shared/jobs/queue-name.ts";
import { createStuckKeySweep } from "#shared/jobs/sweep.ts";
import { parseEnvironment } from "#shared/process/environment.ts";
import { type ClusterSettings, clusterSettings, watchedNamespaces } from "#shared/process/settings.ts";
import type { ProviderEntry } from "#shared/provider/config.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import { openCluster } from "./cluster.ts";
import { loggerOf, type ProcessContext, type Role } from "./process-context.ts";
import { openRedis } from "./redis.ts";

/** Turns Kubernetes events and timers into jobs, and exports the gauges of what all processes share. */
export async function startWatcher(context: ProcessContext): Promise<Role> {
  const settings = parseEnvironment(clusterSettings.extend(watcherSettings.shape), context.env);
  const connection = openCluster(context, settings, "watcher");
  const redis = openRedis(context, "watcher", "wait");
  const producer = createProducer({ redis, log: loggerOf(context, "jobs") });
  context.parts.add("watcher producer", () => producer.close());
  const watcher = new Watcher({
    settings,
    producer,
    fleet: new Fleet({ redis }),
    sweepStuckKeys: createStuckKeySweep({ redis, producer, log: loggerOf(context, "jobs") }),
    watchProxies: proxyWatch(context, settings, connection),
    log: loggerOf(context, "watcher"),
  });
  let known = new Map<string, string>();
  await context.providersFile.follow(settings.PROVIDERS_FILE, async (entries) => {
    const now = revisions(entries);
    const touched = [...new Set([...known.keys(), ...now.keys()])].filter((name) => known.get(name) !== now.get(name));
    known = now;
    await watcher.setProviders([...now.keys()], touched);
  });
  watcher.start();
  context.parts.add("watcher", () => watcher.stop());
  exportGauges(context, { watcher, redis, producer });
  return { notReady: () => (watcher.synced ? [] : ["the first list of Proxies"]) };
}

function revisions(entries: readonly ProviderEntry[]): Map<string, string> {
  return new Map(entries.map(({ name, revision }) => [name, revision]));
}

function proxyWatch(context: ProcessContext, settings: ClusterSettings, connection: ClusterConnection) {
  const log = loggerOf(context, "watcher");
  const count = (kind: string, by = 1): void => context.metrics.problems.inc({ kind }, by);
  return (handlers: ProxyHandlers, signal: AbortSignal): Promise<void> =>
    watchProxies({
      ...handlers,
      connection,
      namespaces: watchedNamespaces(settings),
      signal,
      onMissed: (missed) => {
        count("watch-missed", missed);
        log.warn({ missed }, "a list found changes that no watch had told of");
      },
      onUnreadable: (key, fields) => {
        count("proxy-unreadable");
        log.error({ proxy: key, fields }, "a Proxy does not parse; it is left alone");
      },
      onFailure: ({ code, message }) => {
        count("watch-failed");
        log.warn({ code, reason: message }, "the watch of Proxies failed and is tried again");
      },
    });
}

/** State that all processes share is exported by the watcher alone, so that nothing counts twice. */
function exportGauges(
  context: ProcessContext,
  deps: { watcher: Watcher; redis: RedisClient; producer: Producer },
): void {
  const { metrics } = context;
  const fleet = new Fleet({ redis: deps.redis });
  const depths = async () => {
    const queues = await listQueues(deps.redis);
    return await Promise.all(
      queues.map(async (queue) => ({ queue: queueName(queue), depth: await deps.producer.depth(queue) })),
    );
  };
  metrics.sharedGauge("proxy_operator_proxies", "Proxies by phase.", ["phase"], () =>
    Promise.resolve([...deps.watcher.countByPhase()].map(([phase, value]) => ({ labels: { phase }, value }))),
  );
  metrics.sharedGauge(
    "proxy_operator_leases_active",
    "Leases that hold a proxy, by its provider.",
    ["provider"],
    async () => [...(await fleet.counts())].map(([provider, { leases }]) => ({ labels: { provider }, value: leases })),
  );
  metrics.sharedGauge("proxy_operator_queue_jobs", "Jobs by queue and state.", ["queue", "state"], async () =>
    (await depths()).flatMap(({ queue, depth: { waiting, delayed, active } }) =>
      Object.entries({ waiting, delayed, active }).map(([state, value]) => ({ labels: { queue, state }, value })),
    ),
  );
  metrics.sharedGauge(
    "proxy_operator_queue_oldest_age_seconds",
    "Age of the job that waits longest.",
    ["queue"],
    async () => (await depths()).map(({ queue, depth }) => ({ labels: { queue }, value: depth.oldestAgeSeconds })),
  );
}
