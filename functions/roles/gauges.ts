import type { Fleet } from "#shared/fleet/fleet.ts";
import type { QueueDepth } from "#shared/jobs/depth.ts";
import { type QueueRef, queueName } from "#shared/jobs/queue-name.ts";
import type { Phase } from "#shared/model/proxy-status.ts";
import type { Metrics } from "#shared/telemetry/metrics.ts";

export interface GaugeSources {
  /** Undefined while another process leads. */
  proxiesByPhase: () => ReadonlyMap<Phase, number> | undefined;
  fleet: Pick<Fleet, "counts">;
  queues: () => Promise<QueueRef[]>;
  depth: (queue: QueueRef) => Promise<QueueDepth>;
}

type Samples = { labels: Record<string, string>; value: number }[];

/** State that all processes share is exported by the leading watcher alone, so that nothing counts twice. */
export function exportGauges(metrics: Metrics, sources: GaugeSources): void {
  const gauge = (name: string, help: string, labels: string[], read: () => Promise<Samples>): void =>
    metrics.sharedGauge(name, help, labels, async () => (sources.proxiesByPhase() === undefined ? [] : await read()));
  const depths = shared(async () => {
    const queues = await sources.queues();
    return await Promise.all(
      queues.map(async (queue) => ({ queue: queueName(queue), depth: await sources.depth(queue) })),
    );
  });
  gauge("proxy_operator_proxies", "Proxies by phase.", ["phase"], () =>
    Promise.resolve([...(sources.proxiesByPhase() ?? [])].map(([phase, value]) => ({ labels: { phase }, value }))),
  );
  gauge("proxy_operator_leases_active", "Leases that hold a proxy, by its provider.", ["provider"], async () =>
    [...(await sources.fleet.counts())].map(([provider, { leases }]) => ({ labels: { provider }, value: leases })),
  );
  gauge("proxy_operator_queue_jobs", "Jobs by queue and state.", ["queue", "state"], async () =>
    (await depths()).flatMap(({ queue, depth: { waiting, delayed, active } }) =>
      Object.entries({ waiting, delayed, active }).map(([state, value]) => ({ labels: { queue, state }, value })),
    ),
  );
  gauge("proxy_operator_queue_oldest_age_seconds", "Age of the job that waits longest.", ["queue"], async () =>
    (await depths()).map(({ queue, depth }) => ({ labels: { queue }, value: depth.oldestAgeSeconds })),
  );
}

/** One reading for all who ask while it is under way: the gauges of one scrape are read side by side. */
function shared<T>(read: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<T> | undefined;
  return () => {
    underWay ??= read().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
}
