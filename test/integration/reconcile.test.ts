import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { instanceName } from "#shared/domain/instance-name.ts";
import { Failure } from "#shared/errors/failure.ts";
import { type Proxy, proxy } from "#shared/model/proxy.ts";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import { TestApi } from "#test/kubernetes-api.ts";
import { startRedis, type TestRedis } from "#test/redis.ts";
import { ControlPlane } from "./reconcile/control-plane.ts";

let api: TestApi;
let redis: TestRedis;
let provider: MemoryProvider;
let plane: ControlPlane;
let namespace: string;
let namespaces = 0;

beforeAll(async () => {
  api = await TestApi.start();
});
afterAll(() => api.stop());

beforeEach(async () => {
  redis = await startRedis();
  namespaces += 1;
  namespace = `test-${namespaces}`;
  await api.call("POST", "/api/v1/namespaces", { body: { metadata: { name: namespace } } });
  provider = new MemoryProvider({ name: "lab" });
  plane = makePlane();
  await plane.start();
});
afterEach(async () => {
  await plane.stop();
  await redis.stop();
});

const makePlane = (): ControlPlane =>
  new ControlPlane({
    redisUrl: redis.url,
    kubeconfigFile: api.kubeconfigFile,
    namespace,
    providers: [provider],
  });
const collection = (): string => `/apis/crawl.example.com/v1alpha1/namespaces/${namespace}/proxies`;
const transient = (): Failure => new Failure({ class: "Transient", code: "Timeout", message: "no answer" });

async function apply(name = "p1", spec: object = {}): Promise<Proxy> {
  const healthCheck = { intervalSeconds: 1, healthyThreshold: 1, unhealthyThreshold: 1 };
  const body = { metadata: { name }, spec: { provider: "lab", healthCheck, ...spec } };
  return proxy.parse((await api.call("POST", collection(), { body })).body);
}

async function read(name = "p1"): Promise<Proxy | undefined> {
  const { status, body } = await api.call("GET", `${collection()}/${name}`);
  return status === 404 ? undefined : proxy.parse(body);
}

const until = (check: () => Promise<void>): Promise<void> => vi.waitFor(check, { timeout: 40_000, interval: 50 });
const untilPhase = (phase: string): Promise<void> =>
  until(async () => expect((await read())?.status.phase).toBe(phase));
const untilGone = (): Promise<void> => until(async () => expect(await read()).toBeUndefined());
const reason = async (): Promise<string | undefined> =>
  (await read())?.status.conditions?.find(({ type }) => type === "Ready")?.reason;
const remove = () => api.call("DELETE", `${collection()}/p1`);

test("a failing Proxy runs at most 5 times in its first 10 s", async () => {
  for (let n = 0; n < 50; n += 1) provider.failNext("create", transient());
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const began = Date.now();
  await apply();
  const timer = setInterval(() => Date.now() - began > 10_000 && resolve(), 100);
  await over;
  clearInterval(timer);
  expect(plane.reports.length).toBeLessThanOrEqual(5);
  expect(provider.faults.count("create")).toBeGreaterThan(0);
  expect(await reason()).toBe("TransientError");
}, 20_000);

test("creates cut off before and after every call to the backend make one instance each", async () => {
  const steps = ["read instance", "create disk", "create instance"];
  const cuts = new Set(steps.flatMap((what) => [`${what} before`, `${what} after`]));
  const cut = cuts.size;
  provider.backend.onStep = ({ what, when }) => {
    if (cuts.delete(`${what} ${when}`)) throw transient();
  };
  const names = Array.from({ length: cut }, (_, n) => `p${n + 1}`);
  for (const name of names) await apply(name);
  for (const name of names) await until(async () => expect((await read(name))?.status.phase).toBe("Ready"));
  expect(cuts.size).toBe(0);
  expect(provider.backend.instances.size).toBe(cut);
  expect(provider.backend.disks.size).toBe(cut);
});

test("a process that ends while it creates leaves one instance to the next", async () => {
  const release = provider.faults.hold("create", "after");
  await apply();
  await until(async () => expect(provider.instances.size).toBe(1));
  await plane.stop();
  release();
  plane = makePlane();
  await plane.start();
  await untilPhase("Ready");
  expect((await read())?.status.instance?.incarnation).toBe(1);
  expect(provider.instances.size).toBe(1);
  await remove();
  await untilGone();
  expect(provider.instances.size + provider.backend.disks.size).toBe(0);
});

test("a Proxy deleted while it is created leaves nothing", async () => {
  provider.failNext("create", transient(), "after"); // the answer is lost, the instance is there
  await apply();
  await until(async () => expect(provider.instances.size).toBe(1));
  await remove();
  await untilGone();
  expect(provider.instances.size + provider.backend.disks.size).toBe(0);
});

test("a changed spec replaces the instance, and the old one goes", async () => {
  await apply();
  await untilPhase("Ready");
  const [old] = provider.instances.keys();
  await api.call("PATCH", `${collection()}/p1`, {
    body: { spec: { port: 8080 } },
    type: "application/merge-patch+json",
  });
  await until(async () =>
    expect((await read())?.status).toMatchObject({ phase: "Ready", instance: { incarnation: 2 } }),
  );
  await until(async () => expect((await read())?.status.retiring).toBeUndefined());
  expect([...provider.instances.keys()]).not.toContain(old);
  expect(provider.instances.size).toBe(1);
  expect((await plane.fleet.readByName(`${namespace}/p1`))?.incarnation).toBe(2);
});

test("an instance that stops is not leased any more, and replaced 30 s after it was begun", async () => {
  await apply();
  await untilPhase("Ready");
  const [name = ""] = provider.instances.keys();
  provider.stop(name);
  await until(async () => expect(await reason()).toBe("InstanceStopped"));
  expect(await plane.fleet.readByName(`${namespace}/p1`)).toBeUndefined();
  expect((await read())?.status.instance?.incarnation).toBe(1);
  plane.aheadMs = 31_000;
  await api.call("PATCH", `${collection()}/p1`, {
    body: { metadata: { labels: { look: "again" } } },
    type: "application/merge-patch+json",
  });
  await until(async () =>
    expect((await read())?.status).toMatchObject({ phase: "Ready", instance: { incarnation: 2 } }),
  );
  expect([...provider.instances.keys()]).not.toContain(name);
});

test("a provider that is not configured is named, and the Proxy goes on when it is", async () => {
  await apply("p1", { provider: "later" });
  await until(async () => expect(await reason()).toBe("ProviderNotConfigured"));
  const later = new MemoryProvider({ name: "later" });
  await plane.configure(later);
  await untilPhase("Ready");
  await plane.unconfigure("later");
  await remove();
  await until(async () =>
    expect((await read())?.status.conditions).toContainEqual(
      expect.objectContaining({ type: "Stalled", reason: "DeletionBlocked" }),
    ),
  );
  expect(later.instances.size).toBe(1);
  await plane.configure(later);
  await untilGone();
  expect(later.instances.size).toBe(0);
});

test("a foreign instance of our name stalls the Proxy and is never touched", async () => {
  await plane.unconfigure("lab");
  const { metadata } = await apply();
  const name = instanceName({ installation: "inst234567", uid: metadata.uid, incarnation: 1 });
  provider.addForeign(name);
  await plane.configure(provider);
  await until(async () => expect(await reason()).toBe("NameConflict"));
  await remove();
  await untilGone();
  expect(provider.instances.has(name)).toBe(true);
});

test("a missing Secret is named, waited for, and never keeps a Proxy from being deleted", async () => {
  await apply("p1", { auth: { secretRef: { name: "login" } } });
  await until(async () =>
    expect((await read())?.status.conditions?.[0]?.message).toContain(`${namespace}/login does not exist`),
  );
  const stringData = { username: "u", password: "p" };
  const secrets = `/api/v1/namespaces/${namespace}/secrets`;
  await api.call("POST", secrets, { body: { metadata: { name: "login" }, stringData } });
  await untilPhase("Ready");
  await api.call("DELETE", `${secrets}/login`);
  await remove();
  await untilGone();
  expect(provider.instances.size).toBe(0);
});

test("one provider that hangs does not hold up another", async () => {
  provider.faults.hold("create");
  const quick = new MemoryProvider({ name: "quick" });
  await plane.configure(quick);
  for (let n = 0; n < 20; n += 1) await apply(`slow-${n}`);
  await apply("p1", { provider: "quick" });
  await untilPhase("Ready");
  expect(provider.instances.size).toBe(0);
});
