import { watcherSettings } from "#functions/watcher/config.ts";
import { type ProxyHandlers, Watcher } from "#functions/watcher/watcher.ts";
import type { ClusterConnection } from "#shared/cluster/connection.ts";
import { watchProxies } from "#shared/cluster/watch-proxies.ts";
import { Fleet } from "#shared/fleet/fleet.ts";
import { createProducer } from "#shared/jobs/producer.ts";
import { listQueues } from "#shared/jobs/queue-name.ts";
import { createStuckKeySweep } from "#shared/jobs/sweep.ts";
import { parseEnvironment } from "#shared/process/environment.ts";
import { type ClusterSettings, clusterSettings, watchedNamespaces } from "#shared/process/settings.ts";
import type { ProviderEntry } from "#shared/provider/config.ts";
import { openCluster } from "./cluster.ts";
import { exportGauges } from "./gauges.ts";
import { loggerOf, type ProcessContext, type Role } from "./process-context.ts";
import { openRedis } from "./redis.ts";

/** Turns Kubernetes events and timers into jobs, and exports the gauges of what all processes share. */
export async function startWatcher(context: ProcessContext): Promise<Role> {
  const settings = parseEnvironment(clusterSettings.extend(watcherSettings.shape), context.env);
  const connection = openCluster(context, settings, "watcher");
  const redis = openRedis(context, "watcher", "wait");
  const producer = createProducer({ redis, log: loggerOf(context, "jobs") });
  context.parts.add("watcher producer", () => producer.close());
  const fleet = new Fleet({ redis });
  const watcher = new Watcher({
    settings,
    producer,
    fleet,
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
  exportGauges(context.metrics, {
    proxiesByPhase: () => watcher.countByPhase(),
    fleet,
    queues: () => listQueues(redis),
    depth: (queue) => producer.depth(queue),
  });
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
