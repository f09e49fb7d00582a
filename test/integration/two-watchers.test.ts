import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { Redis } from "ioredis";
import { expect, type TestContext, test, vi } from "vitest";
import { createProducer } from "#shared/jobs/producer.ts";
import { apiVersion } from "#shared/model/names.ts";
import { startApiProxy } from "#test/fakes/api-proxy/api-proxy.ts";
import { TestApi } from "#test/kubernetes-api.ts";
import { freePort, startRedis } from "#test/redis.ts";

const run = path.join(import.meta.dirname, "../../functions/run.ts");
/** What the issue allows; a takeover takes about 17 s. */
const withinAMinute = { timeout: 60_000, interval: 100 };

/** Real watcher processes on a real Redis and a Kubernetes API; nobody works on the jobs that they make. */
async function setUp({ onTestFinished }: Pick<TestContext, "onTestFinished">) {
  const api = await TestApi.start();
  onTestFinished(() => api.stop());
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const redis = new Redis(server.url);
  onTestFinished(() => redis.disconnect());
  const producer = createProducer({ redis });
  onTestFinished(() => producer.close());
  const providers = path.join(api.dir, "providers.yaml");
  await writeFile(providers, "providers: [{name: lab, type: kubernetes, kubernetes: {allowSources: [10.0.0.0/8]}}]\n");
  const start = (name: string, kubeconfig = api.kubeconfigFile) =>
    startWatcher(name, onTestFinished, {
      REDIS_URL: server.url,
      KUBECONFIG: kubeconfig,
      POD_NAMESPACE: api.namespace,
      PROVIDERS_FILE: providers,
    });
  const jobs = async (): Promise<number> => (await producer.depth({ fn: "reconcile" })).waiting;
  let applied = 0;
  /** A Proxy is applied, and its job is there within a minute. */
  const expectServed = async (): Promise<void> => {
    const before = await jobs();
    applied += 1;
    const body = { apiVersion, kind: "Proxy", metadata: { name: `p${applied}` }, spec: { provider: "nobody" } };
    const made = await api.call("POST", `/apis/${apiVersion}/namespaces/${api.namespace}/proxies`, { body });
    expect(made.status).toBe(201);
    await vi.waitFor(async () => expect(await jobs()).toBe(before + 1), withinAMinute);
  };
  const leader = async (): Promise<unknown> => {
    const target = `/apis/coordination.k8s.io/v1/namespaces/${api.namespace}/leases/egress-proxies-watcher`;
    const { body } = await api.call("GET", target);
    return typeof body.spec === "object" && body.spec !== null && "holderIdentity" in body.spec
      ? body.spec.holderIdentity
      : undefined;
  };
  return { api, start, expectServed, leader };
}

interface WatcherProcess {
  name: string;
  child: ChildProcess;
  /** Whether it says of itself that it leads: only a leader tells of Proxies. */
  leads: () => Promise<boolean>;
  end: (signal: NodeJS.Signals) => Promise<void>;
}

async function startWatcher(
  name: string,
  onTestFinished: TestContext["onTestFinished"],
  env: Record<string, string>,
): Promise<WatcherProcess> {
  const port = await freePort();
  const child = spawn(process.execPath, [run, "watcher"], {
    env: {
      ...process.env,
      ...env,
      POD_NAME: name,
      ADMIN_HOST: "127.0.0.1",
      ADMIN_PORT: String(port),
      LOG_LEVEL: "error",
    },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const ended = once(child, "exit");
  const died = ended.then(() => {
    throw new Error(`watcher ${name} ended before it was ready`);
  });
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await ended;
  };
  onTestFinished(() => end("SIGKILL"));
  const get = (what: string) => fetch(`http://127.0.0.1:${port}${what}`, { signal: AbortSignal.timeout(5_000) });
  const isReady = () =>
    get("/readyz").then(
      ({ ok }) => ok,
      () => false,
    );
  await Promise.race([vi.waitFor(async () => expect(await isReady()).toBe(true), withinAMinute), died]);
  died.catch(() => undefined); // from now on its end is the test's affair
  const leads = async (): Promise<boolean> =>
    (await (await get("/metrics")).text()).includes("proxy_operator_proxies{");
  return { name, child, leads, end };
}

// They mostly wait for a Lease to run out: side by side.
test.concurrent("one of two watchers acts; the other one takes over from one that was killed, and at once from one that stops", async ({
  onTestFinished,
}) => {
  const { start, expectServed, leader } = await setUp({ onTestFinished });
  const first = await start("first");
  const second = await start("second");
  expect([await first.leads(), await second.leads()]).toEqual([true, false]);
  await expectServed();
  await first.end("SIGKILL");
  await expectServed();
  expect([await leader(), await second.leads()]).toEqual(["second", true]);
  const third = await start("third");
  await second.end("SIGTERM");
  await vi.waitFor(async () => expect(await leader()).toBe("third"), withinAMinute);
  await expectServed();
  expect(await third.leads()).toBe(true);
});

test.concurrent("a leader that is paused and wakes up leads no longer, and its successor acts alone", async ({
  onTestFinished,
}) => {
  const { start, expectServed, leader } = await setUp({ onTestFinished });
  const paused = await start("paused");
  const successor = await start("successor");
  paused.child.kill("SIGSTOP");
  await expectServed();
  expect(await leader()).toBe("successor");
  paused.child.kill("SIGCONT");
  await vi.waitFor(async () => expect(await paused.leads()).toBe(false), withinAMinute);
  await expectServed();
  expect([await leader(), await successor.leads()]).toEqual(["successor", true]);
});

test.concurrent("a leader that is cut off from the API stops by itself before its successor begins", async ({
  onTestFinished,
}) => {
  const { api, start, expectServed, leader } = await setUp({ onTestFinished });
  const proxy = await startApiProxy({ backend: api.kubeconfigFile });
  onTestFinished(() => proxy.stop());
  const cutOff = await start("cut-off", proxy.kubeconfigFile);
  const successor = await start("successor");
  expect(await cutOff.leads()).toBe(true);
  await proxy.refuseConnections();
  await vi.waitFor(async () => expect(await leader()).toBe("successor"), withinAMinute);
  expect(await cutOff.leads()).toBe(false);
  await expectServed();
  await proxy.listen();
  await successor.end("SIGTERM");
  await vi.waitFor(async () => expect(await leader()).toBe("cut-off"), withinAMinute);
  await expectServed();
});
