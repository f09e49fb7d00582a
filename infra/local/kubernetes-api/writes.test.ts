import { afterAll, expect, test } from "vitest";
import { TestApi } from "#test/kubernetes-api.ts";

const api = await TestApi.start();
afterAll(() => api.stop());

const proxies = `/apis/crawl.example.com/v1alpha1/namespaces/${api.namespace}/proxies`;
const configMaps = `/api/v1/namespaces/${api.namespace}/configmaps`;
const mergePatch = "application/merge-patch+json";
const proxy = (name: string, spec: object = { provider: "lab" }) => ({
  apiVersion: "crawl.example.com/v1alpha1",
  kind: "Proxy",
  metadata: { name },
  spec,
});
const configMap = (name: string, more: object = {}) => ({ metadata: { name, ...more }, data: { a: "1" } });

test("a created Proxy has its defaults, an identity and no status of the sender's", async () => {
  const sent = { ...proxy("fresh"), status: { phase: "Ready" } };
  const { status, body } = await api.call("POST", proxies, { body: sent });
  expect(status).toBe(201);
  expect(body).toMatchObject({
    metadata: { name: "fresh", namespace: api.namespace, generation: 1, uid: expect.stringMatching(/^[0-9a-f-]{36}$/) },
    spec: { provider: "lab", port: 3128, maxLeases: 1, healthCheck: { intervalSeconds: 15, unhealthyThreshold: 3 } },
  });
  expect(body["status"]).toBeUndefined();
});

test.each([
  [
    { provider: "lab", port: 70_000 },
    "spec.port: Invalid value: 70000: spec.port in body should be less than or equal to 65535",
  ],
  [{ provider: "lab", port: 0 }, "spec.port: Invalid value: 0: spec.port in body should be greater than or equal to 1"],
  [
    { provider: "lab", port: "x" },
    'spec.port: Invalid value: "string": spec.port in body must be of type integer: "string"',
  ],
  [{}, "spec.provider: Required value"],
  [
    { provider: "Lab" },
    `spec.provider: Invalid value: "Lab": spec.provider in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'`,
  ],
  [{ provider: "a".repeat(64) }, "spec.provider: Too long: may not be more than 63 bytes"],
  [{ provider: "" }, 'spec.provider: Invalid value: "": spec.provider in body should be at least 1 chars long'],
  [{ provider: "lab", cloudInit: {} }, "spec.cloudInit: Invalid value: set exactly one of inline and secretKeyRef"],
])("a Proxy with spec %j is refused in the words of the real server", async (spec, message) => {
  const { status, body } = await api.call("POST", proxies, { body: proxy("bad", spec) });
  expect(status).toBe(422);
  expect(body.message).toContain(`Proxy.crawl.example.com "bad" is invalid: `);
  expect(body.message).toContain(message);
  expect(body["reason"]).toBe("Invalid");
});

test("a status is held to its enum, and two conditions of one type are refused", async () => {
  await api.call("POST", proxies, { body: proxy("conditions") });
  const patch = (status: object) =>
    api.call("PATCH", `${proxies}/conditions/status`, { body: { status }, type: mergePatch });
  const wrong = await patch({ phase: "Happy" });
  expect(wrong.body.message).toContain('status.phase: Unsupported value: "Happy": supported values: "Pending"');
  const ready = {
    type: "Ready",
    status: "True",
    reason: "Ready",
    message: "",
    lastTransitionTime: "2026-01-01T00:00:00Z",
  };
  expect((await patch({ conditions: [ready, ready] })).body.message).toContain(
    'status.conditions[1]: Duplicate value: {"type":"Ready"}',
  );
  const late = await patch({ conditions: [{ ...ready, lastTransitionTime: "yesterday" }] });
  // The real server goes on without the "status.".
  expect(late.body.message).toContain('status.conditions[0].lastTransitionTime: Invalid value: "yesterday": ');
  expect(late.body.message).toContain("conditions[0].lastTransitionTime in body must be of type date-time");
  expect((await patch({ conditions: [ready] })).status).toBe(200);
});

test("the provider of a Proxy cannot be changed", async () => {
  await api.call("POST", proxies, { body: proxy("fixed") });
  const change = { body: { spec: { provider: "other" } }, type: mergePatch };
  const { status, body } = await api.call("PATCH", `${proxies}/fixed`, change);
  expect(status).toBe(422);
  expect(body.message).toContain('spec.provider: Invalid value: "other": provider is immutable');
});

test("an unknown field is refused, warned of, or dropped silently, as the request says", async () => {
  const sent = { body: proxy("unknown", { provider: "lab", prot: 1 }) };
  const strict = await api.call("POST", `${proxies}?fieldValidation=Strict`, sent);
  expect(strict).toMatchObject({
    status: 400,
    body: { message: expect.stringContaining('unknown field "spec.prot"') },
  });
  const warned = await api.call("POST", proxies, sent);
  expect(warned.headers["warning"]).toBe(`299 - "unknown field \\"spec.prot\\""`);
  expect(warned.body["spec"]).not.toHaveProperty("prot");
  const ignored = await api.call("PUT", `${proxies}/unknown?fieldValidation=Ignore`, {
    body: { ...sent.body, metadata: warned.body.metadata },
  });
  expect(ignored.headers["warning"]).toBeUndefined();
});

test("the generation counts changes of the spec, and a write that changes nothing is none", async () => {
  const { body: created } = await api.call("POST", proxies, { body: proxy("counted") });
  const patch = (target: string, body: object) => api.call("PATCH", proxies + target, { body, type: mergePatch });
  const same = await patch("/counted", { spec: { maxLeases: 1 } });
  expect(same.body.metadata["resourceVersion"]).toBe(created.metadata["resourceVersion"]);
  const labelled = await patch("/counted", { metadata: { labels: { a: "b" } } });
  expect(labelled.body.metadata).toMatchObject({ generation: 1, labels: { a: "b" } });
  const changed = await patch("/counted", { spec: { maxLeases: 2 }, status: { phase: "Ready" } });
  expect(changed.body).toMatchObject({ metadata: { generation: 2 }, spec: { maxLeases: 2 } });
  expect(changed.body["status"]).toBeUndefined();
  const reported = await patch("/counted/status", { spec: { maxLeases: 9 }, status: { phase: "Ready" } });
  expect(reported.body).toMatchObject({
    metadata: { generation: 2 },
    spec: { maxLeases: 2 },
    status: { phase: "Ready" },
  });
});

test("a stale resourceVersion is a conflict in a PUT and in a patch, and a Proxy is not replaced without one", async () => {
  const { body: first } = await api.call("POST", proxies, { body: proxy("stale") });
  const target = `${proxies}/stale`;
  await api.call("PATCH", target, { body: { spec: { maxLeases: 2 } }, type: mergePatch });
  expect(await api.call("PUT", target, { body: first })).toMatchObject({ status: 409, body: { reason: "Conflict" } });
  const { resourceVersion } = first.metadata;
  const patch = { body: { metadata: { resourceVersion }, spec: { maxLeases: 3 } }, type: mergePatch };
  expect((await api.call("PATCH", target, patch)).status).toBe(409);
  expect((await api.call("PUT", target, { body: proxy("stale") })).status).toBe(422);
  expect(
    (await api.call("PUT", target, { body: { ...first, metadata: { ...first.metadata, name: "x" } } })).status,
  ).toBe(400);
});

test("a JSON patch is applied whole or, when a test fails, not at all", async () => {
  await api.call("POST", configMaps, { body: configMap("patched") });
  const patch = (body: unknown) =>
    api.call("PATCH", `${configMaps}/patched`, { body, type: "application/json-patch+json" });
  const add = { op: "add", path: "/data/b", value: "2" };
  expect((await patch([add, { op: "test", path: "/data/a", value: "9" }])).status).toBe(422);
  expect((await patch([add, { op: "remove", path: "/data/nothing" }])).status).toBe(422);
  expect((await patch({ op: "add" })).status).toBe(400);
  expect((await api.call("GET", `${configMaps}/patched`)).body["data"]).toEqual({ a: "1" });
  expect((await patch([add, { op: "test", path: "/data/a", value: "1" }])).body["data"]).toEqual({ a: "1", b: "2" });
});

test("a strategic patch merges the containers of a Pod by name, and a Proxy takes none", async () => {
  const pods = `/api/v1/namespaces/${api.namespace}/pods`;
  const containers = ["a", "b"].map((name) => ({ name, image: "1" }));
  await api.call("POST", pods, {
    body: { metadata: { name: "pair", finalizers: ["x/a", "x/b"] }, spec: { containers } },
  });
  const body = {
    metadata: { "$deleteFromPrimitiveList/finalizers": ["x/a"] },
    spec: { containers: [{ name: "b", image: "2" }], "$setElementOrder/containers": [{ name: "a" }, { name: "b" }] },
  };
  const type = "application/strategic-merge-patch+json";
  const { body: patched } = await api.call("PATCH", `${pods}/pair`, { body, type });
  expect(patched).toMatchObject({
    metadata: { finalizers: ["x/b"] },
    spec: {
      containers: [
        { name: "a", image: "1" },
        { name: "b", image: "2" },
      ],
    },
  });
  await api.call("POST", proxies, { body: proxy("plain") });
  expect((await api.call("PATCH", `${proxies}/plain`, { body: {}, type })).status).toBe(415);
});

test("a Proxy must say what it is, a ConfigMap need not", async () => {
  const { kind: _, ...untyped } = proxy("untyped");
  expect(await api.call("POST", proxies, { body: untyped })).toMatchObject({
    status: 400,
    body: { message: expect.stringContaining("Object 'Kind' is missing") },
  });
  const old = await api.call("POST", proxies, { body: { ...proxy("old"), apiVersion: "crawl.example.com/v1" } });
  expect(old).toMatchObject({
    status: 400,
    body: { message: expect.stringContaining("does not match the expected API version") },
  });
});

test("nothing is stored by a dry run", async () => {
  expect((await api.call("POST", `${configMaps}?dryRun=All`, { body: configMap("dry") })).status).toBe(201);
  expect((await api.call("GET", `${configMaps}/dry`)).status).toBe(404);
  await api.call("POST", configMaps, { body: configMap("dry") });
  const patch = { body: { data: { a: "2" } }, type: mergePatch };
  expect((await api.call("PATCH", `${configMaps}/dry?dryRun=All`, patch)).body["data"]).toEqual({ a: "2" });
  expect((await api.call("DELETE", `${configMaps}/dry?dryRun=All`)).status).toBe(200);
  expect((await api.call("GET", `${configMaps}/dry`)).body["data"]).toEqual({ a: "1" });
});

test("a name is taken once, must be a DNS name, and can be left to the server", async () => {
  expect((await api.call("POST", configMaps, { body: configMap("once") })).status).toBe(201);
  expect(await api.call("POST", configMaps, { body: configMap("once") })).toMatchObject({
    status: 409,
    body: { reason: "AlreadyExists", message: 'configmaps "once" already exists' },
  });
  expect((await api.call("POST", configMaps, { body: configMap("No_Name") })).status).toBe(422);
  expect((await api.call("POST", configMaps, { body: configMap("a/b") })).status).toBe(422);
  const { body } = await api.call("POST", configMaps, { body: { metadata: { generateName: "made-" } } });
  expect(body.metadata["name"]).toMatch(/^made-[0-9a-z]{5}$/);
  const elsewhere = await api.call("POST", "/api/v1/namespaces/nowhere/configmaps", { body: configMap("x") });
  expect(elsewhere).toMatchObject({ status: 404, body: { message: 'namespaces "nowhere" not found' } });
});

test("plain text of a Secret is stored as data", async () => {
  const body = { metadata: { name: "plain" }, stringData: { user: "crawler" } };
  const { body: secret } = await api.call("POST", `/api/v1/namespaces/${api.namespace}/secrets`, { body });
  expect(secret).toMatchObject({ type: "Opaque", data: { user: "Y3Jhd2xlcg==" } });
  expect(secret["stringData"]).toBeUndefined();
});
