import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { apiVersion } from "#shared/model/names.ts";
import type { RunningParts } from "#shared/process/stop.ts";
import type { ApiClient } from "#test/api-client.ts";
import { freePort } from "#test/redis.ts";
import { type FleetReport, fleetReport } from "./fleet-report.ts";

const namespace = "bench";
const postsAtOnce = 32;

export async function createNamespace(client: ApiClient): Promise<void> {
  await must(client, "/api/v1/namespaces", { metadata: { name: namespace } });
}

/** A login and so many Proxies that use it; nobody looks at them yet. */
export async function createProxies(client: ApiClient, size: number, port: number): Promise<void> {
  const stringData = { username: "bench", password: "bench" };
  await must(client, `/api/v1/namespaces/${namespace}/secrets`, { metadata: { name: "login" }, stringData });
  const target = `/apis/${apiVersion}/namespaces/${namespace}/proxies`;
  const spec = {
    provider: "lab",
    port,
    auth: { secretRef: { name: "login" } },
    healthCheck: { intervalSeconds: 60, healthyThreshold: 1 },
  };
  const names = Array.from({ length: size }, (_, index) => `proxy-${String(index).padStart(5, "0")}`).values();
  await Promise.all(
    Array.from({ length: postsAtOnce }, async () => {
      for (const name of names) await must(client, target, { apiVersion, kind: "Proxy", metadata: { name }, spec });
    }),
  );
}

async function must(client: ApiClient, target: string, body: object): Promise<void> {
  const { status, text } = await client.call("POST", target, { body });
  if (status !== 201) throw new Error(`POST ${target}: ${status} ${text}`);
}

/** A process of the bench. Ends with it. */
interface BenchProcess {
  pid: number;
}

export interface FunctionsProcess extends BenchProcess {
  report: () => Promise<FleetReport>;
}

export async function startFunctionsProcess(
  parts: RunningParts,
  { redisUrl, kubeconfig }: { redisUrl: string; kubeconfig: string },
): Promise<FunctionsProcess> {
  const script = fileURLToPath(new URL("./fleet-functions.ts", import.meta.url));
  const child = fork(script, [redisUrl, kubeconfig, namespace], { execArgv: [] });
  endsWith(parts, "functions", child);
  const died = once(child, "exit").then(() => Promise.reject(new Error("the functions process has ended")));
  died.catch(() => undefined); // told by the next report
  const report = async (): Promise<FleetReport> => {
    const answer = once(child, "message", { signal: AbortSignal.timeout(60_000) });
    child.send("report");
    return fleetReport.parse((await Promise.race([answer, died]))[0]);
  };
  return { pid: child.pid ?? 0, report };
}

/** Otherwise V8 lets the heap of a watcher grow to twice what it needs before it collects: see docs/benchmarks.md. */
const smallHeap = ["--optimize-for-size"];

export interface WatcherProcess extends BenchProcess {
  /** How many Proxies it counts as Ready; 0 before it has listed any. */
  readyProxies: () => Promise<number>;
}

/** The watcher as it is started in production. */
export async function startWatcherProcess(
  parts: RunningParts,
  { redisUrl, kubeconfig, dir }: { redisUrl: string; kubeconfig: string; dir: string },
): Promise<WatcherProcess> {
  const port = await freePort();
  const providers = path.join(dir, "providers.yaml");
  await writeFile(providers, "providers: [{name: lab, type: kubernetes, kubernetes: {allowSources: [10.0.0.0/8]}}]\n");
  const run = fileURLToPath(new URL("../../functions/run.ts", import.meta.url));
  const child = spawn(process.execPath, [...smallHeap, run, "watcher"], {
    env: {
      ...process.env,
      REDIS_URL: redisUrl,
      KUBECONFIG: kubeconfig,
      POD_NAMESPACE: namespace,
      PROVIDERS_FILE: providers,
      ADMIN_HOST: "127.0.0.1",
      ADMIN_PORT: String(port),
      LOG_LEVEL: "warn",
    },
    stdio: ["ignore", "inherit", "inherit"],
  });
  endsWith(parts, "watcher", child);
  const readyProxies = async (): Promise<number> => {
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => undefined);
    const text = (await answer?.text()) ?? "";
    return Number(/^proxy_operator_proxies\{phase="Ready"\} (\d+)$/m.exec(text)?.[1] ?? 0);
  };
  return { pid: child.pid ?? 0, readyProxies };
}

function endsWith(parts: RunningParts, name: string, child: ChildProcess): void {
  const exited = once(child, "exit");
  parts.add(name, async () => {
    child.kill("SIGKILL");
    await exited;
  });
}

/** Resident memory in MB, now and at its highest; Linux only. */
export async function memoryOf(pid: number): Promise<{ now: number; most: number }> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const field = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? 0) / 1024;
  return { now: field("VmRSS"), most: field("VmHWM") };
}
