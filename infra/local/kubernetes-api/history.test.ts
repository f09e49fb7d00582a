import { afterAll, expect, test } from "vitest";
import { SmallApi } from "#test/small-api.ts";

const api = await SmallApi.start({ historySize: 20, bookmarkSeconds: 0.1 });
afterAll(() => api.stop());

const configMaps = "/api/v1/namespaces/default/configmaps";
const create = (name: string) => api.call("POST", configMaps, { body: { metadata: { name } } });
const patch = (name: string, body: object) =>
  api.call("PATCH", `${configMaps}/${name}`, { body, type: "application/merge-patch+json" });
const version = async () => String((await api.call("GET", configMaps)).body.metadata["resourceVersion"]);

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

test("stopping the server ends its watches", async () => {
  const other = await SmallApi.start();
  const watching = (async () => {
    for await (const { object } of other.watch("/api/v1/namespaces?watch=true")) void object;
  })().catch(() => "cut off");
  await other.stop();
  await watching;
});
