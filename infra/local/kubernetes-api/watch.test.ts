import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { TestApi } from "#test/kubernetes-api.ts";

const api = await TestApi.start();
afterAll(() => api.stop());

const configMaps = `/api/v1/namespaces/${api.namespace}/configmaps`;
const mergePatch = "application/merge-patch+json";
const create = (name: string, labels: object = {}) =>
  api.call("POST", configMaps, { body: { metadata: { name, labels } } });
const patch = (name: string, body: object) => api.call("PATCH", `${configMaps}/${name}`, { body, type: mergePatch });
const version = async () => String((await api.call("GET", configMaps)).body.metadata["resourceVersion"]);
/** The next `count` events of a watch, as "TYPE name". */
async function events(query: string, count: number): Promise<string[]> {
  const seen: string[] = [];
  for await (const { type, object } of api.watch(`${configMaps}?watch=true&${query}`)) {
    seen.push(`${type} ${z.string().parse(object.metadata["name"])}`);
    if (seen.length === count) break;
  }
  return seen;
}

test("a watch from a version replays what came after it and goes on", async () => {
  const from = await version();
  await create("first");
  const following = events(`resourceVersion=${from}`, 4);
  await patch("first", { data: { a: "1" } });
  await api.call("DELETE", `${configMaps}/first`);
  await create("second");
  expect(await following).toEqual(["ADDED first", "MODIFIED first", "DELETED first", "ADDED second"]);
});

test("for a watch with a selector an object appears and disappears with its labels", async () => {
  const from = await version();
  await create("moving");
  await patch("moving", { metadata: { labels: { app: "web" } } });
  await patch("moving", { data: { a: "1" } });
  await patch("moving", { metadata: { labels: { app: null } } });
  expect(await events(`resourceVersion=${from}&labelSelector=app%3Dweb`, 3)).toEqual([
    "ADDED moving",
    "MODIFIED moving",
    "DELETED moving",
  ]);
});

test("a watch without a version begins with what there is, and a requested beginning is closed by a bookmark", async () => {
  await create("present", { only: "this" });
  expect(await events("labelSelector=only", 1)).toEqual(["ADDED present"]);
  const query = "labelSelector=only&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
  for await (const { type, object } of api.watch(`${configMaps}?watch=true&${query}`)) {
    if (type !== "BOOKMARK") continue;
    expect(object.metadata).toMatchObject({ annotations: { "k8s.io/initial-events-end": "true" } });
    break;
  }
  expect((await api.call("GET", `${configMaps}?watch=true&sendInitialEvents=true`)).status).toBe(422);
});

test("a watch ends by itself after its timeout", async () => {
  const seen: unknown[] = [];
  for await (const event of api.watch(`${configMaps}?watch=true&resourceVersion=${await version()}&timeoutSeconds=1`))
    seen.push(event);
  expect(seen).toEqual([]);
});

test("no list goes on and no watch begins at a version that is forgotten", async () => {
  const own = await TestApi.start({ own: true });
  try {
    const target = `/api/v1/namespaces/${own.namespace}/configmaps`;
    for (const name of ["a", "b"]) await own.call("POST", target, { body: { metadata: { name } } });
    const page = (await own.call("GET", `${target}?limit=1`)).body.metadata;
    await own.call("DELETE", `${target}/b`);
    await own.forgetVersions();
    const rest = await own.call("GET", `${target}?limit=1&continue=${String(page["continue"])}`);
    expect(rest).toMatchObject({ status: 410, body: { reason: "Expired" } });
    const seen: unknown[] = [];
    for await (const event of own.watch(`${target}?watch=true&resourceVersion=${String(page["resourceVersion"])}`))
      seen.push(event);
    expect(seen).toMatchObject([{ type: "ERROR", object: { code: 410, reason: "Expired" } }]);
  } finally {
    await own.stop();
  }
});
