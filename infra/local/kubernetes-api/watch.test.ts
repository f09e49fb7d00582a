import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { TestApi } from "#test/kubernetes-api.ts";

const api = await TestApi.start({ historySize: 20, bookmarkSeconds: 0.1 });
afterAll(() => api.stop());

const configMaps = "/api/v1/namespaces/default/configmaps";
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

test("bookmarks tell the version while nothing happens", async () => {
  const from = await version();
  for await (const { type, object } of api.watch(
    `${configMaps}?watch=true&resourceVersion=${from}&allowWatchBookmarks=true`,
  )) {
    expect(type).toBe("BOOKMARK");
    expect(object.metadata["resourceVersion"]).toBe(from);
    break;
  }
});

test("a version that is too old, or of a lost future, gets an ERROR with code 410 and the end", async () => {
  const from = await version();
  await create("busy");
  for (let change = 0; change < 25; change++) await patch("busy", { data: { change: `${change}` } });
  for (const old of [from, "999999999"]) {
    const seen: unknown[] = [];
    for await (const event of api.watch(`${configMaps}?watch=true&resourceVersion=${old}`)) seen.push(event);
    expect(seen).toMatchObject([{ type: "ERROR", object: { code: 410, reason: "Expired" } }]);
  }
});

test("a watch ends by itself after its timeout", async () => {
  const seen: unknown[] = [];
  for await (const event of api.watch(`${configMaps}?watch=true&resourceVersion=${await version()}&timeoutSeconds=1`))
    seen.push(event);
  expect(seen).toEqual([]);
});

test("stopping the server ends its watches", async () => {
  const other = await TestApi.start();
  const watching = (async () => {
    for await (const { object } of other.watch("/api/v1/namespaces?watch=true")) void object;
  })().catch(() => "cut off");
  await other.stop();
  await watching;
});
