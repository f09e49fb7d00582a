import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { TestApi } from "#test/kubernetes-api.ts";
import { expectTold, Scene } from "./scene.ts";

let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start({ own: true });
});
afterAll(() => api.stop());

test("An API server that is killed and started again makes nothing gone and nothing new", async () => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  await scene.create("b");
  const followed = await scene.follow();
  await scene.watching();
  await api.restart();
  await scene.touch("a", "1");
  await expectTold(followed, ["set a 0", "set b 0", "set a 1"]);
  expect(followed.missed()).toBe(0);
});

test("What happened unseen before a compaction is told by a list", async () => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  await scene.create("b");
  const followed = await scene.follow();
  await scene.watching();
  await scene.proxy.refuseConnections();
  await scene.touch("a", "1");
  await scene.touch("a", "2");
  await scene.remove("b");
  await api.forgetVersions();
  await scene.proxy.listen();
  await expectTold(followed, ["set a 0", "set b 0", "set a 2", "gone b"]);
  await vi.waitFor(() => expect(scene.count("list")).toBeGreaterThanOrEqual(2));
  expect(followed.missed()).toBe(0);
});
