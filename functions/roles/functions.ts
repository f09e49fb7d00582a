import { randomBytes } from "node:crypto";
import { HealthProbe } from "#functions/health-probe/health-probe.ts";
import { createLeaseFunction } from "#functions/lease/lease.ts";
import { every } from "#functions/watcher/every.ts";
import { Fleet } from "#shared/fleet/fleet.ts";
import { ProbeSchedule } from "#shared/fleet/probe-schedule.ts";
import { createConsumer, type JobReport } from "#shared/jobs/consumer.ts";
import { createProducer, type Producer } from "#shared/jobs/producer.ts";
import { reconcileQueue } from "#shared/jobs/queue-name.ts";
import { LeaseStore } from "#shared/lease/store.ts";
import { parseEnvironment } from "#shared/process/environment.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import type { Metrics } from "#shared/telemetry/metrics.ts";
import type { FunctionName } from "./function-names.ts";
import { loggerOf, type ProcessContext, type Role } from "./process-context.ts";
import { openRedis } from "./redis.ts";
import { healthProbeRole } from "./settings.ts";

const forgetMs = 60_000;

/** Works on jobs and probes proxies: all functions, or some of them. */
export async function startFunctions(context: ProcessContext, only: readonly FunctionName[]): Promise<Role> {
  const redis = openRedis(context, "functions", "wait");
  const producer = createProducer({ redis, log: loggerOf(context, "jobs") });
  context.parts.add("producer", () => producer.close());
  const fleet = new Fleet({ redis });
  const onOutcome = ({ queue, kind }: JobReport): void =>
    context.metrics.jobs.inc({ function: queue.fn, outcome: kind });
  if (only.includes("lease")) startLease(context, redis, onOutcome);
  if (only.includes("health-probe")) await startHealthProbe(context, redis, { producer, fleet });
  if (only.includes("reconcile")) {
    // Only then: it brings the Kubernetes client, 60 MB that probes and reaping do without.
    const { startReconcile } = await import("./reconcile.ts");
    await startReconcile(context, { redis, producer, fleet, onOutcome });
  }
  return { notReady: () => [] };
}

function startLease(context: ProcessContext, redis: RedisClient, onOutcome: (report: JobReport) => void): void {
  const log = loggerOf(context, "lease");
  const store = new LeaseStore({
    redis,
    randomId: () => randomBytes(18).toString("base64url"),
    random: Math.random,
    monotonicMs: () => performance.now(),
  });
  const consumer = createConsumer({
    redis,
    queue: { fn: "lease" },
    concurrency: 1,
    handler: createLeaseFunction({ store, log }),
    backoff: { baseMs: 1_000, maxMs: 10_000, slowMs: 10_000, permanentMs: 60_000 },
    log,
    onOutcome,
  });
  context.parts.add("lease", () => consumer.close());
}

async function startHealthProbe(
  context: ProcessContext,
  redis: RedisClient,
  { producer, fleet }: { producer: Producer; fleet: Fleet },
): Promise<void> {
  const log = loggerOf(context, "health-probe");
  const onUnreadable = (error: Error): void => {
    context.metrics.problems.inc({ kind: "registry-record" });
    log.error({ reason: error.message }, "a registry record does not parse; its proxy is not probed");
  };
  const { PROVIDERS_FILE, ...settings } = parseEnvironment(healthProbeRole, context.env);
  let configured: string[] = [];
  await context.providersFile.follow(PROVIDERS_FILE, (entries) => {
    configured = entries.map(({ name }) => name);
  });
  const probes = new HealthProbe({
    schedule: new ProbeSchedule({ redis, onUnreadable }),
    settings,
    enqueueReconcile: (provider, key) => producer.enqueue(reconcileQueue(provider, configured.includes(provider)), key),
    onProbe: (probe) => context.metrics.observeProbe(probe),
    log,
  });
  probes.start();
  context.parts.add("health-probe", () => probes.stop());
  const stop = new AbortController();
  void every({ name: "gone Proxies", intervalMs: forgetMs, signal: stop.signal, log }, () =>
    forgetGoneProxies(context.metrics, fleet),
  );
  // Not waited for: with Redis away its one read ends when the connection does.
  context.parts.add("series of gone Proxies", () => stop.abort());
}

/** Every process that probes has series of its own; only one of them runs a Proxy's last job and hears of its end. */
export async function forgetGoneProxies(metrics: Metrics, fleet: Pick<Fleet, "names">): Promise<void> {
  // Before the names: one that is registered meanwhile is not to lose its first probe.
  const counted = metrics.proxiesWithSeries();
  if (counted.length === 0) return;
  const registered = await fleet.names();
  for (const proxy of counted) if (!registered.has(proxy)) metrics.forgetProxy(proxy);
}
