import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createProducer, type Producer } from "#shared/jobs/producer.ts";
import { ApiClient } from "#test/api-client.ts";
import { startWithDefinitions } from "#test/cluster/start-with-definitions.ts";
import { type ApiRequests, isWrite, readApiRequests, requestsBetween } from "./api-requests.ts";
import type { Bench, BenchContext } from "./bench.ts";
import { startBenchRedis } from "./bench-redis.ts";
import type { FleetReport } from "./fleet-report.ts";
import {
  createNamespace,
  createProxies,
  memoryOf,
  startFunctionsProcess,
  startWatcherProcess,
  type WatcherProcess,
} from "./fleet-rig.ts";
import { type Table, whole } from "./table.ts";

const defaultSize = 10_000;
const quietWithinMs = 900_000;
/** Not oftener: what a look at the metrics costs the watcher and Redis grows with the fleet. */
const lookEveryMs = 2_000;
/** Nothing waits, nothing runs, for so long: it is quiet. */
const quietForMs = 4_000;

/** From a cold watcher to quiet, and then the steady state, on a real API server and a provider that takes no time. */
export const fleetBench: Bench = {
  summary: "10,000 Proxies on a real API server: from a cold start to quiet, then the steady state",
  defaultSeconds: 600,
  run: runFleet,
};

interface Reading {
  requests: ApiRequests;
  report: FleetReport;
}

async function runFleet({ seconds, size = defaultSize, parts }: BenchContext): Promise<Table> {
  const dir = await mkdtemp(path.join(tmpdir(), "bench-fleet-"));
  parts.add("folder", () => rm(dir, { recursive: true, force: true }));
  const { url: redisUrl, redis, version } = await startBenchRedis(parts);
  const plane = await startWithDefinitions();
  parts.add("control plane", () => plane.stop());
  const client = new ApiClient(plane);
  parts.add("client", () => client.close());
  const producer = createProducer({ redis });
  parts.add("producer", () => producer.close());
  const where = { redisUrl, kubeconfig: plane.adminKubeconfig, dir };
  say(`creating ${whole(size)} Proxies`);
  await createNamespace(client);
  const functions = await startFunctionsProcess(parts, where);
  await createProxies(client, size, (await functions.report()).port);
  const read = async (): Promise<Reading> => ({
    requests: await readApiRequests(client),
    report: await functions.report(),
  });
  const cold = await read();
  const begun = performance.now();
  const watcher = await startWatcherProcess(parts, where);
  const times = await untilQuiet({ size, watcher, producer, begun });
  const quiet = await read();
  say(`quiet after ${times.quiet.toFixed(1)} s; now ${seconds} s of steady state`);
  await sleep(seconds * 1000);
  const end = await read();
  const toQuiet = rowsOf(cold, quiet, size);
  const steady = rowsOf(quiet, end, size);
  return {
    title: `fleet: ${whole(size)} Proxies, from a cold watcher to quiet, then ${seconds} s of steady state`,
    columns: ["", "to quiet", "each", "steady state"],
    rows: [
      ["seconds until all are Ready", times.ready.toFixed(1), "", ""],
      ["seconds until quiet", times.quiet.toFixed(1), "", String(seconds)],
      ...toQuiet.map((row, index) => [...row, steady[index]?.[1] ?? ""]),
      ["instances in the provider", whole(quiet.report.instances), "", whole(end.report.instances)],
      ...(await memoryRows({ watcher: watcher.pid, functions: functions.pid })),
    ],
    redisVersion: version,
    conditions: "kube-apiserver 1.37 and etcd without fsync on the same machine; a provider that takes no time",
  };
}

interface Waiting {
  size: number;
  watcher: WatcherProcess;
  producer: Producer;
  begun: number;
}

/** Seconds since `begun` until all were Ready, and until then nothing more was to be done. Rejects after 15 min. */
async function untilQuiet({ size, watcher, producer, begun }: Waiting): Promise<{ ready: number; quiet: number }> {
  const elapsed = (): number => performance.now() - begun;
  let ready = 0;
  let told = 0;
  let idleSince: number | undefined;
  while (elapsed() < quietWithinMs) {
    await sleep(lookEveryMs);
    const count = await watcher.readyProxies();
    if (ready === 0 && count === size) ready = elapsed();
    if (elapsed() - told > 10_000) {
      told = elapsed();
      say(`${whole(count)} Ready after ${Math.round(told / 1000)} s`);
    }
    const { waiting, active } = await producer.depth({ fn: "reconcile", provider: "lab" });
    const isIdle = ready > 0 && waiting + active === 0;
    idleSince = isIdle ? (idleSince ?? elapsed()) : undefined;
    if (idleSince !== undefined && elapsed() - idleSince > quietForMs)
      return { ready: ready / 1000, quiet: idleSince / 1000 };
  }
  throw new Error(`not quiet after ${quietWithinMs / 1000} s: ${await watcher.readyProxies()} of ${size} are Ready`);
}

/** `[name, total, per Proxy]` of what came between two readings. */
function rowsOf(before: Reading, after: Reading, size: number): string[][] {
  const requests = (wanted: (key: string) => boolean) => requestsBetween(before.requests, after.requests, wanted);
  const grown = (pick: (report: FleetReport) => number | undefined) =>
    (pick(after.report) ?? 0) - (pick(before.report) ?? 0);
  const sum = (record: Record<string, number>) => Object.values(record).reduce((all, count) => all + count, 0);
  const counts: [string, number][] = [
    ["writes to Proxies", requests((key) => isWrite(key, "proxies"))],
    ["events written", requests((key) => isWrite(key, "events"))],
    ["reads of Proxies", requests((key) => key === "GET proxies")],
    ["reads of Secrets", requests((key) => key === "GET secrets")],
    ["lists", requests((key) => /^LIST (proxies|secrets)$/.test(key))],
    ["reconcile runs", grown(({ runs }) => sum(runs))],
    ["provider calls but lists", grown(({ calls }) => sum(calls) - (calls.list ?? 0))],
    ["probes", grown(({ probes }) => probes)],
  ];
  return counts.map(([name, count]) => [name, whole(count), (count / size).toFixed(2)]);
}

async function memoryRows(pids: Record<string, number>): Promise<string[][]> {
  return await Promise.all(
    Object.entries(pids).map(async ([name, pid]) => {
      const { now, most } = await memoryOf(pid);
      return [`memory of ${name}, MB`, `${whole(most)} at most`, "", whole(now)];
    }),
  );
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
