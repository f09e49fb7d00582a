import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { type WatcherSettings, watcherSettings } from "#functions/watcher/config.ts";
import type { WatcherDeps } from "#functions/watcher/watcher.ts";
import type { ClusterConnection } from "#shared/cluster/connection.ts";
import { takePart } from "#shared/cluster/leader-election.ts";
import { LeaderLease } from "#shared/cluster/leader-lease.ts";
import { Fleet } from "#shared/fleet/fleet.ts";
import { createProducer } from "#shared/jobs/producer.ts";
import { listQueues } from "#shared/jobs/queue-name.ts";
import { createStuckKeySweep } from "#shared/jobs/sweep.ts";
import { parseEnvironment } from "#shared/process/environment.ts";
import { type ClusterSettings, clusterSettings } from "#shared/process/settings.ts";
import type { ProviderEntry } from "#shared/provider/config.ts";
import { openCluster } from "./cluster.ts";
import { exportGauges } from "./gauges.ts";
import { loggerOf, type ProcessContext, type Role } from "./process-context.ts";
import { openRedis } from "./redis.ts";
import { WatcherTerm } from "./watcher-term.ts";
import { clusterWatches } from "./watches.ts";

/**
 * Turns Kubernetes events and timers into jobs, and exports the gauges of what all processes share; while it leads.
 * Any number may run: one leads, and the others wait for it to end.
 */
export async function startWatcher(context: ProcessContext): Promise<Role> {
  const settings = parseEnvironment(clusterSettings.extend(watcherSettings.shape), context.env);
  const connection = openCluster(context, settings, "watcher");
  const redis = openRedis(context, "watcher", "wait");
  const log = loggerOf(context, "watcher");
  const producer = createProducer({ redis, log: loggerOf(context, "jobs") });
  context.parts.add("watcher producer", () => producer.close());
  const fleet = new Fleet({ redis });
  const deps: WatcherDeps = {
    settings,
    producer,
    fleet,
    sweepStuckKeys: createStuckKeySweep({ redis, producer, log: loggerOf(context, "jobs") }),
    ...clusterWatches(context, settings, connection),
    log,
  };
  const term = new WatcherTerm(deps);
  let known = new Map<string, string>();
  await context.providersFile.follow(settings.PROVIDERS_FILE, async (entries) => {
    const now = revisions(entries);
    const touched = [...new Set([...known.keys(), ...now.keys()])].filter((name) => known.get(name) !== now.get(name));
    known = now;
    await term.setProviders([...now.keys()], touched);
  });
  const election = standForLeader(context, { ...settings, connection, term });
  exportGauges(context.metrics, {
    proxiesByPhase: () => term.watcher?.countByPhase(),
    fleet,
    queues: () => listQueues(redis),
    depth: (queue) => producer.depth(queue),
  });
  return {
    notReady: () => {
      if (election.holder() === undefined) return ["the election of a leading watcher"];
      return term.watcher === undefined || term.watcher.synced ? [] : ["the first list of Proxies"];
    },
  };
}

function revisions(entries: readonly ProviderEntry[]): Map<string, string> {
  return new Map(entries.map(({ name, revision }) => [name, revision]));
}

interface Candidacy extends Pick<ClusterSettings, "POD_NAMESPACE" | "RELEASE_NAME">, Pick<WatcherSettings, "POD_NAME"> {
  connection: ClusterConnection;
  term: WatcherTerm;
}

/** Stands for leader until the process stops. `holder`: who leads; empty: nobody; undefined: not known yet. */
function standForLeader(context: ProcessContext, candidacy: Candidacy): { holder: () => string | undefined } {
  const { POD_NAMESPACE: namespace, RELEASE_NAME, POD_NAME, connection, term } = candidacy;
  const log = loggerOf(context, "watcher");
  const identity = POD_NAME ?? `${hostname()}_${randomUUID()}`;
  let holder: string | undefined;
  const stop = new AbortController();
  const ended = takePart({
    lease: new LeaderLease({ connection, namespace, name: `${RELEASE_NAME}-watcher` }),
    identity,
    lead: (leadership) => term.serve(leadership),
    signal: stop.signal,
    onHolder: (name) => {
      holder = name;
      log.info({ leader: name === "" ? "nobody" : name, self: identity }, "who leads the watchers");
    },
    onFailure: ({ code, message }) => {
      context.metrics.problems.inc({ kind: "leader-election" });
      log.warn({ code, reason: message }, "the election of a leader failed and is tried again");
    },
  });
  context.parts.add("watcher", async () => {
    stop.abort(new Error("the watcher stops"));
    await ended;
  });
  return { holder: () => holder };
}
