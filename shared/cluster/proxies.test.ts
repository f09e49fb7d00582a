import { afterAll, beforeAll, expect, test } from "vitest";
import { finalizer } from "#shared/model/names.ts";
import type { Proxy } from "#shared/model/proxy.ts";
import { json, startScriptedServer } from "#test/fakes/scripted-server.ts";
import { TestApi } from "#test/kubernetes-api.ts";
import { ClusterConnection } from "./connection.ts";
import { ProxyClient } from "./proxies.ts";
import { SecretReader } from "./secrets.ts";

let api: TestApi;
let connection: ClusterConnection;
let client: ProxyClient;
const call = { signal: new AbortController().signal };
const base = "/apis/crawl.example.com/v1alpha1";

beforeAll(async () => {
  api = await TestApi.start();
  connection = ClusterConnection.load({ kubeconfigFile: api.kubeconfigFile, userAgent: "tester" });
  client = new ProxyClient({ connection });
});

afterAll(async () => {
  await connection.close();
  await api.stop();
});

async function create(name: string, options: { namespace?: string; finalizers?: string[] } = {}): Promise<Proxy> {
  const { namespace = api.namespace, finalizers = [] } = options;
  const body = {
    apiVersion: "crawl.example.com/v1alpha1",
    kind: "Proxy",
    metadata: { name, finalizers },
    spec: { provider: "lab" },
  };
  const { status } = await api.call("POST", `${base}/namespaces/${namespace}/proxies`, { body });
  expect(status).toBe(201);
  return await read(name, namespace);
}

async function read(name: string, namespace = api.namespace): Promise<Proxy> {
  const found = await client.get({ namespace, name }, call);
  if (found === undefined) throw new Error(`no Proxy ${name}`);
  return found;
}

const remove = (name: string) => api.call("DELETE", `${base}/namespaces/${api.namespace}/proxies/${name}`);
const instance = {
  name: "proxy-x",
  incarnation: 1,
  zone: "",
  specHash: "h",
  specHashVersion: "1",
  intentTime: "2026-01-01T00:00:00Z",
};

test("A Proxy is read with the defaults of its spec, and one that does not exist is undefined", async () => {
  expect(await create("read")).toMatchObject({ spec: { provider: "lab", port: 3128, maxLeases: 1 }, status: {} });
  expect(await client.get({ namespace: api.namespace, name: "nobody" }, call)).toBeUndefined();
  expect(await client.get({ namespace: "nowhere", name: "nobody" }, call)).toBeUndefined();
});

test("A status patch changes, keeps and removes fields, and answers with the Proxy as it is now", async () => {
  const made = await create("status");
  const first = await client.patchStatus(made, { phase: "Pending", instance, egressIP: "192.0.2.1" }, call);
  expect(first.status).toEqual({ phase: "Pending", instance, egressIP: "192.0.2.1" });
  const { specHash, ...rest } = instance;
  const grown = { ...rest, specHash, providerID: "p" };
  const second = await client.patchStatus(first, { phase: "Ready", instance: grown }, call);
  const third = await client.patchStatus(second, { phase: "Ready", instance }, call);
  expect(second.status).toEqual({ phase: "Ready", instance: grown });
  expect((await read("status")).status).toEqual({ phase: "Ready", instance });
  expect(third.metadata.generation).toBe(made.metadata.generation);
  expect(await client.patchStatus(third, third.status, call)).toBe(third);
});

test("A status patch on a stale read is a Conflict and changes nothing", async () => {
  const stale = await create("stale");
  await client.patchStatus(stale, { phase: "Pending" }, call);
  await expect(client.patchStatus(stale, { phase: "Failed" }, call)).rejects.toMatchObject({
    class: "Transient",
    code: "Conflict",
    ambiguous: false,
  });
  expect((await read("stale")).status).toEqual({ phase: "Pending" });
});

test("A status patch on a Proxy that is gone is NotFound", async () => {
  const made = await create("vanished");
  await remove("vanished");
  await expect(client.patchStatus(made, { phase: "Pending" }, call)).rejects.toMatchObject({ class: "NotFound" });
});

test("The finalizer is added once, beside others, and only to what was read", async () => {
  const bare = await create("finalized");
  const first = await client.addFinalizer(bare, call);
  expect(first.metadata.finalizers).toEqual([finalizer]);
  expect(await client.addFinalizer(first, call)).toBe(first);
  await expect(client.addFinalizer(bare, call)).rejects.toMatchObject({ class: "Transient", code: "Conflict" });
  const shared = await create("shared", { finalizers: ["example.com/other"] });
  expect((await client.addFinalizer(shared, call)).metadata.finalizers).toEqual(["example.com/other", finalizer]);
});

test("Removing the finalizer ends a deleted Proxy, and is done a second time as well", async () => {
  const made = await client.addFinalizer(await create("ending"), call);
  await remove("ending");
  const deleted = await read("ending");
  expect(deleted.metadata.deletionTimestamp).toBeDefined();
  await client.removeFinalizer(deleted, call);
  expect(await client.get({ namespace: api.namespace, name: "ending" }, call)).toBeUndefined();
  await client.removeFinalizer(made, call);
});

test("Removing the finalizer works on a stale read, whose place in the list has changed", async () => {
  const stale = await client.addFinalizer(await create("moved", { finalizers: ["example.com/other"] }), call);
  const patch = [{ op: "remove", path: "/metadata/finalizers/0" }];
  const type = "application/json-patch+json";
  await api.call("PATCH", `${base}/namespaces/${api.namespace}/proxies/moved`, { body: patch, type });
  await client.removeFinalizer(stale, call);
  expect((await read("moved")).metadata.finalizers).toEqual([]);
  await client.removeFinalizer(stale, call);
});

test("Removing the finalizer never touches a successor of the same name", async () => {
  const old = await client.addFinalizer(await create("twice"), call);
  await client.removeFinalizer(old, call);
  await remove("twice");
  await client.addFinalizer(await create("twice"), call);
  await client.removeFinalizer(old, call);
  expect((await read("twice")).metadata.finalizers).toEqual([finalizer]);
});

test("A list is complete over its pages, for all namespaces or for some", async () => {
  const [here, other] = [api.namespace, `${api.namespace}-other`];
  await api.addNamespace(other);
  await create("elsewhere", { namespace: other });
  const names = async (namespaces: string[] | "*") =>
    (await client.list({ namespaces }, call)).proxies.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  expect(await names([other])).toEqual([`${other}/elsewhere`]);
  expect(await names("*")).toEqual(expect.arrayContaining([`${other}/elsewhere`, `${here}/read`]));
  expect(await names([other, here])).toHaveLength((await names([here])).length + 1);
});

test("A Secret is read as bytes, and one that does not exist is undefined", async () => {
  const data = { username: Buffer.from("ü").toString("base64"), raw: Buffer.of(0, 255).toString("base64") };
  const body = { kind: "Secret", apiVersion: "v1", metadata: { name: "credentials" }, data };
  await api.call("POST", `/api/v1/namespaces/${api.namespace}/secrets`, { body });
  const secrets = new SecretReader({ connection });
  const found = await secrets.read(api.namespace, "credentials", call);
  expect(Buffer.from(found?.data.username ?? []).toString()).toBe("ü");
  expect([...(found?.data.raw ?? [])]).toEqual([0, 255]);
  expect(found?.resourceVersion).toMatch(/^\d+$/);
  expect(await secrets.read(api.namespace, "nobody", call)).toBeUndefined();
});

test("A Proxy that does not parse is named with its fields, without values, and still listed as existing", async () => {
  const metadata = {
    namespace: "n",
    name: "odd",
    uid: "u",
    resourceVersion: "1",
    generation: 1,
    creationTimestamp: "t",
  };
  const odd = { metadata, spec: { provider: "lab", port: "hunter2" } };
  const answers = (path: string) =>
    path.endsWith("/odd") ? odd : { metadata: { resourceVersion: "5" }, items: [odd] };
  const server = await startScriptedServer((response, request) => json(answers(request.path))(response, request));
  const scripted = ClusterConnection.load({ kubeconfigFile: server.kubeconfigFile, userAgent: "tester" });
  try {
    const proxies = new ProxyClient({ connection: scripted });
    const failure = {
      class: "Permanent",
      code: "UnreadableProxy",
      message: expect.stringContaining("n/odd does not parse: spec.port"),
    };
    await expect(proxies.get({ namespace: "n", name: "odd" }, call)).rejects.toMatchObject(failure);
    const listed = await proxies.list({ namespaces: "*" }, call);
    expect(listed).toMatchObject({ proxies: [], unreadable: [{ namespace: "n", name: "odd", uid: "u", failure }] });
    expect(JSON.stringify(listed)).not.toContain("hunter2");
  } finally {
    await scripted.close();
    await server.stop();
  }
});
