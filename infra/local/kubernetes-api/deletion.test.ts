import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { TestApi } from "#test/kubernetes-api.ts";

const api = await TestApi.start();
afterAll(() => api.stop());

const configMaps = `/api/v1/namespaces/${api.namespace}/configmaps`;
const pods = `/api/v1/namespaces/${api.namespace}/pods`;
const mergePatch = "application/merge-patch+json";
const create = (target: string, name: string, metadata: object = {}, more: object = {}) =>
  api.call("POST", target, { body: { metadata: { name, ...metadata }, ...more } });
const statusOf = async (target: string): Promise<number> => (await api.call("GET", target)).status;
const conditions = z.looseObject({
  status: z.object({ conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).nullable() }),
});
/** The types of those that are True. */
const conditionsOf = async (target: string): Promise<string[]> => {
  const { status } = conditions.parse((await api.call("GET", target)).body);
  return (status.conditions ?? []).flatMap((one) => (one.status === "True" ? [one.type] : []));
};
const removeFinalizers = (target: string) =>
  api.call("PATCH", target, { body: { metadata: { finalizers: null } }, type: mergePatch });

test("an object with a finalizer stays, with a deletionTimestamp, until the finalizer is gone", async () => {
  await create(configMaps, "kept", { finalizers: ["x/y"] });
  const first = await api.call("DELETE", `${configMaps}/kept`);
  const again = await api.call("DELETE", `${configMaps}/kept`);
  expect(first.body.metadata["deletionTimestamp"]).toEqual(expect.any(String));
  expect(again.body.metadata["resourceVersion"]).toBe(first.body.metadata["resourceVersion"]);
  const added = { body: { metadata: { finalizers: ["x/y", "x/z"] } }, type: mergePatch };
  expect((await api.call("PATCH", `${configMaps}/kept`, added)).status).toBe(422);
  await removeFinalizers(`${configMaps}/kept`);
  expect(await statusOf(`${configMaps}/kept`)).toBe(404);
});

test("a deletion whose precondition does not hold is refused", async () => {
  const { body } = await create(configMaps, "guarded");
  const remove = (preconditions: object) => api.call("DELETE", `${configMaps}/guarded`, { body: { preconditions } });
  expect(await remove({ uid: "another" })).toMatchObject({ status: 409, body: { reason: "Conflict" } });
  expect((await remove({ resourceVersion: "1" })).status).toBe(409);
  const { uid, resourceVersion } = body.metadata;
  expect((await remove({ uid, resourceVersion })).body).toMatchObject({ kind: "Status", status: "Success" });
});

test("a Pod on a node goes in two steps, one without a node at once", async () => {
  const spec = { containers: [{ name: "squid", image: "squid" }], terminationGracePeriodSeconds: 7 };
  await create(pods, "unbound", {}, { spec });
  await api.call("DELETE", `${pods}/unbound`);
  expect(await statusOf(`${pods}/unbound`)).toBe(404);
  await create(pods, "bound", {}, { spec });
  const binding = { body: { metadata: { name: "bound" }, target: { kind: "Node", name: "local" } } };
  expect((await api.call("POST", `${pods}/bound/binding`, binding)).status).toBe(201);
  expect((await api.call("POST", `${pods}/bound/binding`, binding)).status).toBe(409);
  const running = { body: { status: { phase: "Running", podIP: "127.0.1.1" } }, type: mergePatch };
  expect((await api.call("PATCH", `${pods}/bound/status`, running)).body).toMatchObject({
    spec: { nodeName: "local" },
  });
  const { body } = await api.call("DELETE", `${pods}/bound`);
  expect(body.metadata).toMatchObject({ deletionGracePeriodSeconds: 7 });
  expect(await statusOf(`${pods}/bound`)).toBe(200);
  await api.call("DELETE", `${pods}/bound`, {
    body: { gracePeriodSeconds: 0, preconditions: { uid: body.metadata["uid"] } },
  });
  expect(await statusOf(`${pods}/bound`)).toBe(404);
});

test("a CustomResourceDefinition is served when it is created, and takes its objects with it", async () => {
  const group = `${api.namespace}.example.com`; // definitions are of the whole cluster
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const schema = { openAPIV3Schema: { type: "object", properties: { size: { type: "integer", default: 3 } } } };
  const spec = {
    group,
    scope: "Cluster",
    names: { kind: "Widget", plural: "widgets" },
    versions: [{ name: "v1", served: true, storage: true, schema }],
  };
  await create(definitions, `widgets.${group}`, {}, { spec });
  await expect.poll(() => conditionsOf(`${definitions}/widgets.${group}`)).toContain("Established");
  const widget = { apiVersion: `${group}/v1`, kind: "Widget" };
  const widgets = `/apis/${group}/v1/widgets`;
  expect((await create(widgets, "w", { finalizers: ["x/y"] }, widget)).body).toMatchObject({ kind: "Widget", size: 3 });
  await api.call("DELETE", `${definitions}/widgets.${group}`);
  await expect
    .poll(async () => (await api.call("GET", `${widgets}/w`)).body.metadata["deletionTimestamp"])
    .toEqual(expect.any(String));
  await removeFinalizers(`${widgets}/w`);
  await expect.poll(() => statusOf(`${definitions}/widgets.${group}`), { timeout: 20_000 }).toBe(404);
  expect(await statusOf(widgets)).toBe(404);
});

test("a CustomResourceDefinition with a rule that is no CEL is refused", async () => {
  const rules = [{ rule: "self.a ==" }];
  const spec = {
    group: "test.example.com",
    scope: "Cluster",
    names: { kind: "Broken", plural: "brokens" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-validations": rules } },
      },
    ],
  };
  const { status, body } = await create(
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "brokens.test.example.com",
    {},
    { spec },
  );
  expect(status).toBe(422);
  expect(body.message).toContain('CustomResourceDefinition.apiextensions.k8s.io "brokens.test.example.com" is invalid');
});

test("the namespaces that the product needs cannot be deleted", async () => {
  expect((await api.call("DELETE", "/api/v1/namespaces/kube-system")).status).toBe(403);
});
