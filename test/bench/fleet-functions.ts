import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { HealthProbe } from "#functions/health-probe/health-probe.ts";
import { ReconcileConsumers } from "#functions/reconcile/start.ts";
import { ClusterConnection } from "#shared/cluster/connection.ts";
import { EventRecorder } from "#shared/cluster/events.ts";
import { loadInstallation } from "#shared/cluster/installation.ts";
import { ProxyClient } from "#shared/cluster/proxies.ts";
import { SecretReader } from "#shared/cluster/secrets.ts";
import { Fleet } from "#shared/fleet/fleet.ts";
import { ProbeSchedule } from "#shared/fleet/probe-schedule.ts";
import { createProducer } from "#shared/jobs/producer.ts";
import type { Provider } from "#shared/provider/contract.ts";
import { connectRedis } from "#shared/redis/connect.ts";
import { createLogger } from "#shared/telemetry/logger.ts";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import type { FleetReport } from "./fleet-report.ts";

/**
 * The functions process of `bench fleet`: reconcile and health-probe as their role runs them, on a provider that takes no
 * time. Arguments: url of Redis, path of a kubeconfig, namespace. Answers each message with a FleetReport; ends with its
 * parent.
 */
const [redisUrl = "", kubeconfigFile = "", namespace = ""] = process.argv.slice(2);
process.once("disconnect", () => process.exit());

/** Every proxy of the bench is this server: it lets any CONNECT through to nowhere, which is what a probe without a url asks. */
const proxy = createServer();
proxy.on("connect", (_request, socket) => socket.end("HTTP/1.1 200 OK\r\n\r\n"));
proxy.listen(0, "127.0.0.1");
await once(proxy, "listening");

const log = createLogger({ levels: { level: "warn", components: {} }, pretty: false, destination: process.stderr });
const redis = connectRedis({ url: redisUrl, name: "bench-functions", whenDown: "wait", onError: () => undefined });
const connection = ClusterConnection.load({ kubeconfigFile, userAgent: "bench-functions" });
const call = { signal: AbortSignal.timeout(60_000) };
const lab = new MemoryProvider({ name: "lab", polls: 0, deletePolls: 0 });
const provider: Provider = {
  name: lab.name,
  type: lab.type,
  place: (request) => lab.place(request),
  create: (request, options) => lab.create(request, options),
  get: async (providerID, options) => {
    const instance = await lab.get(providerID, options);
    return instance.ip === undefined ? instance : { ...instance, ip: "127.0.0.1" };
  },
  delete: (identity, options) => lab.delete(identity, options),
  list: (options) => lab.list(options),
  close: () => lab.close(),
};
const producer = createProducer({ redis, log });
const runs: Record<string, number> = {};
let probes = 0;

const consumers = new ReconcileConsumers({
  redis,
  log,
  installation: await loadInstallation({ connection, namespace, releaseName: "bench" }, call),
  events: new EventRecorder({ connection, log }),
  proxies: new ProxyClient({ connection }),
  fleet: new Fleet({ redis }),
  secrets: new SecretReader({ connection }),
  provider: (name) => (name === lab.name ? provider : undefined),
  handOver: (queue, key, delayMs) => producer.enqueue(queue, key, { delayMs }),
  onGone: () => undefined,
  onOutcome: ({ kind }) => {
    runs[kind] = (runs[kind] ?? 0) + 1;
  },
  settings: {
    RECONCILE_CONCURRENCY: 10,
    PENDING_POLL_SECONDS: 10,
    QUOTA_RETRY_SECONDS: 300,
    PERMANENT_RETRY_SECONDS: 3600,
  },
});
await consumers.follow([{ name: lab.name, concurrency: 10 }]);
new HealthProbe({
  schedule: new ProbeSchedule({ redis, onUnreadable: (error) => log.error(error) }),
  settings: { HEALTH_PROBE_CONCURRENCY: 200, HEALTH_CHECK_URL: undefined },
  enqueueReconcile: (name, key) => producer.enqueue({ fn: "reconcile", provider: name }, key),
  onProbe: () => {
    probes += 1;
  },
  log,
}).start();

process.on("message", () => {
  const calls = Object.fromEntries(
    ["create", "get", "delete", "list"].map((op) => [op, lab.calls.filter((each) => each.op === op).length]),
  );
  const report: FleetReport = { port: portOf(proxy.address()), instances: lab.instances.size, calls, runs, probes };
  process.send?.(report);
});

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") throw new Error("the fake proxy has no port");
  return address.port;
}
