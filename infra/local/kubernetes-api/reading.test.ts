import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { TestApi } from "#test/kubernetes-api.ts";

const api = await TestApi.start();
afterAll(() => api.stop());

const configMaps = `/api/v1/namespaces/${api.namespace}/configmaps`;
const list = z.looseObject({
  metadata: z.looseObject({
    resourceVersion: z.string(),
    continue: z.string().optional(),
    remainingItemCount: z.number().optional(),
  }),
  items: z.array(z.looseObject({ metadata: z.looseObject({ name: z.string() }) })),
});
const get = async (target: string) => list.parse((await api.call("GET", target)).body);
const namesOf = async (target: string) => (await get(target)).items.map((item) => item.metadata.name);
const create = (name: string, labels: object = {}) =>
  api.call("POST", configMaps, { body: { metadata: { name, labels } } });

beforeAll(async () => {
  await create("a", { app: "web", tier: "front" });
  await create("b", { app: "web" });
  await create("c", { app: "db" });
  await create("d");
});

test.each([
  ["app=web", ["a", "b"]],
  ["app==web,tier!=front", ["b"]],
  ["app in (web, db),!tier", ["b", "c"]],
  ["app notin (web)", ["c", "d"]],
  ["app", ["a", "b", "c"]],
  ["!app", ["d"]],
])("the label selector %s chooses %j", async (selector, names) => {
  expect(await namesOf(`${configMaps}?labelSelector=${encodeURIComponent(selector)}`)).toEqual(names);
});

test("a field selector chooses by any field of a built-in kind, and by the name of a Proxy", async () => {
  expect(await namesOf(`${configMaps}?fieldSelector=metadata.name%3Db`)).toEqual(["b"]);
  expect(await namesOf(`${configMaps}?fieldSelector=metadata.name!%3Db,metadata.name!%3Dc`)).toEqual(["a", "d"]);
  const custom = await api.call("GET", "/apis/crawl.example.com/v1alpha1/proxies?fieldSelector=spec.port%3D1");
  expect(custom).toMatchObject({ status: 400, body: { message: "field label not supported: spec.port" } });
  expect((await api.call("GET", `${configMaps}?labelSelector=a%20b`)).status).toBe(400);
});

test("the pages of a list show the state of the first one", async () => {
  const first = await get(`${configMaps}?limit=3`);
  expect(first.items.map((item) => item.metadata.name)).toEqual(["a", "b", "c"]);
  expect(first.metadata.remainingItemCount).toBe(1);
  await create("e");
  await api.call("DELETE", `${configMaps}/d`);
  const second = await get(`${configMaps}?limit=3&continue=${first.metadata.continue}`);
  expect(second.items.map((item) => item.metadata.name)).toEqual(["d"]);
  expect(second.metadata).toEqual({ resourceVersion: first.metadata.resourceVersion });
  expect((await api.call("GET", `${configMaps}?limit=3&continue=garbage`)).status).toBe(400);
});

test("kubectl get gets a table with the columns of the kind", async () => {
  const proxies = `/apis/crawl.example.com/v1alpha1/namespaces/${api.namespace}/proxies`;
  await api.call("POST", proxies, {
    body: {
      apiVersion: "crawl.example.com/v1alpha1",
      kind: "Proxy",
      metadata: { name: "one" },
      spec: { provider: "lab" },
    },
  });
  const condition = {
    type: "Ready",
    status: "False",
    reason: "Creating",
    message: "",
    lastTransitionTime: "2026-01-01T00:00:00Z",
  };
  const status = { phase: "Provisioning", conditions: [condition] };
  await api.call("PATCH", `${proxies}/one/status`, { body: { status }, type: "application/merge-patch+json" });
  const headers = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" };
  const { body } = await api.call("GET", proxies, { headers });
  const cells = ["one", "lab", "Provisioning", "False", null, 3128, 1, "Creating", expect.stringMatching(/^\d+s$/)];
  expect(body).toMatchObject({ kind: "Table", rows: [{ cells, object: { kind: "PartialObjectMetadata" } }] });
  expect(
    z
      .looseObject({ columnDefinitions: z.array(z.looseObject({ name: z.string() })) })
      .parse(body)
      .columnDefinitions.map(({ name }) => name),
  ).toEqual(["Name", "Provider", "Phase", "Ready", "IP", "Port", "Max-Leases", "Reason", "Age"]);
});

test("discovery and OpenAPI name the Proxy with its status and its descriptions", async () => {
  const { body } = await api.call("GET", "/apis/crawl.example.com/v1alpha1");
  expect(body["resources"]).toMatchObject([
    { name: "proxies", shortNames: ["px"], categories: ["crawl"] },
    { name: "proxies/status" },
  ]);
  const { body: index } = await api.call("GET", "/openapi/v3");
  const path = "apis/crawl.example.com/v1alpha1";
  expect(index["paths"]).toMatchObject({
    [path]: { serverRelativeURL: expect.stringContaining(`/openapi/v3/${path}`) },
  });
  const { body: document } = await api.call("GET", `/openapi/v3/${path}`);
  const port = { type: "integer", description: "Port that the proxy listens on." };
  const proxy = { properties: { spec: { properties: { port } } } };
  expect(document).toMatchObject({ components: { schemas: { "com.example.crawl.v1alpha1.Proxy": proxy } } });
  expect((await api.call("GET", "/apis/nothing.example.com/v1")).status).toBe(404);
});
