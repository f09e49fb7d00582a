import { afterAll, expect, test } from "vitest";
import { SmallApi } from "#test/small-api.ts";

/** What the controller manager does in a cluster, the small API does itself. */
const api = await SmallApi.start();
afterAll(() => api.stop());

const configMaps = "/api/v1/namespaces/default/configmaps";
const create = (target: string, name: string, metadata: object = {}) =>
  api.call("POST", target, { body: { metadata: { name, ...metadata } } });
const statusOf = async (target: string): Promise<number> => (await api.call("GET", target)).status;
const removeFinalizers = (target: string) =>
  api.call("PATCH", target, { body: { metadata: { finalizers: null } }, type: "application/merge-patch+json" });

test("an object goes when its last owner is gone, and so do its own dependants", async () => {
  const owned = (owner: { body: { metadata: Record<string, unknown> } }) => ({
    ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: owner.body.metadata["uid"] }],
  });
  const owner = await create(configMaps, "owner");
  const child = await create(configMaps, "child", owned(owner));
  await create(configMaps, "grandchild", owned(child));
  expect(await statusOf(`${configMaps}/grandchild`)).toBe(200);
  await api.call("DELETE", `${configMaps}/owner`);
  await expect.poll(() => statusOf(`${configMaps}/grandchild`)).toBe(404);
  expect(await statusOf(`${configMaps}/child`)).toBe(404);
});

test("a namespace takes nothing new while it is deleted, and goes when its last object is gone", async () => {
  await create("/api/v1/namespaces", "doomed");
  const inside = "/api/v1/namespaces/doomed/configmaps";
  await create(inside, "plain");
  await create(inside, "held", { finalizers: ["x/y"] });
  expect((await api.call("DELETE", "/api/v1/namespaces/doomed")).body).toMatchObject({
    status: { phase: "Terminating" },
  });
  await expect.poll(() => statusOf(`${inside}/plain`)).toBe(404);
  expect((await create(inside, "late")).body).toMatchObject({
    code: 403,
    message: expect.stringContaining("being terminated"),
  });
  expect(await statusOf("/api/v1/namespaces/doomed")).toBe(200);
  await removeFinalizers(`${inside}/held`);
  await expect.poll(() => statusOf("/api/v1/namespaces/doomed")).toBe(404);
});
