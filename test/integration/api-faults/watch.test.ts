import { afterAll, beforeAll, expect, test, vi } from "vitest";
import {
  blackHole,
  dropRequest,
  expired,
  frozen,
  garbage,
  refuse,
  tooManyRequests,
  truncated,
} from "#test/fakes/api-proxy/faults.ts";
import {
  cutAfter,
  duplicateEvents,
  expiredAfter,
  garbageAfter,
  loseEvents,
  silentAfter,
  swapEvents,
} from "#test/fakes/api-proxy/watch-faults.ts";
import { TestApi } from "#test/kubernetes-api.ts";
import { expectTold, Scene } from "./scene.ts";

let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start();
});
afterAll(() => api.stop());

const watches = { verb: "watch", resource: "proxies" } as const;
const lists = { verb: "list", resource: "proxies" } as const;

test("A watch whose connection ends in the middle of an event goes on where it was, and the event is told once", async () => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  scene.proxy.rules.add(watches, cutAfter(1));
  const followed = await scene.follow();
  await scene.watching();
  await scene.touch("a", "1");
  await scene.touch("a", "2");
  await expectTold(followed, ["set a 0", "set a 1", "set a 2"]);
  expect(scene.count("list")).toBe(1);
  expect(followed.missed()).toBe(0);
});

test("A watch that goes silent is given up after the idle limit, and the next one tells what it did not", async () => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  scene.proxy.rules.add(watches, silentAfter(1));
  const followed = await scene.follow({ idleMs: 500 });
  await scene.watching();
  await scene.touch("a", "1");
  await scene.remove("a");
  await expectTold(followed, ["set a 0", "set a 1", "gone a"]);
  expect(followed.codes()[0]).toBe("Idle");
});

test.each([
  { form: "as an HTTP status", fault: expired },
  { form: "as an ERROR in the stream", fault: expiredAfter(0) },
])("After a compaction, told $form, a list tells what changed meanwhile, each change once", async ({ fault }) => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  await scene.create("b");
  const followed = await scene.follow();
  await scene.watching();
  await scene.proxy.refuseConnections();
  scene.proxy.rules.add(watches, fault);
  await scene.touch("a", "1");
  await scene.remove("b");
  await scene.proxy.listen();
  await expectTold(followed, ["set a 0", "set b 0", "set a 1", "gone b"]);
  await vi.waitFor(() => expect(followed.codes()).toContain("Gone"));
  expect(followed.missed()).toBe(0);
  await scene.touch("a", "2");
  await expectTold(followed, ["set a 0", "set b 0", "set a 1", "gone b", "set a 2"]);
});

test("An event that a watch has skipped is found by the list after a compaction, and counted as missed", async () => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  await scene.create("b");
  scene.proxy.rules.add(watches, loseEvents(1));
  scene.proxy.rules.add(watches, expired);
  const followed = await scene.follow();
  await scene.watching();
  await scene.touch("a", "1");
  await scene.touch("b", "1");
  await expectTold(followed, ["set a 0", "set b 0", "set b 1"]);
  scene.proxy.hangUp();
  await expectTold(followed, ["set a 0", "set b 0", "set b 1", "set a 1"]);
  await vi.waitFor(() => expect(followed.missed()).toBe(1));
});

test("An event that a watch has skipped is found by the list that comes now and then", async () => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  scene.proxy.rules.add(watches, loseEvents(1), { times: Number.POSITIVE_INFINITY });
  const followed = await scene.follow({ relistMs: 1_000 });
  await scene.watching();
  await scene.remove("a");
  await expectTold(followed, ["set a 0", "gone a"]);
  expect(followed.missed()).toBe(1);
  expect(followed.failures).toEqual([]);
});

test("An event that comes twice is told once", async () => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  scene.proxy.rules.add(watches, duplicateEvents);
  const followed = await scene.follow();
  await scene.watching();
  await scene.touch("a", "1");
  await scene.remove("a");
  await scene.create("b");
  await expectTold(followed, ["set a 0", "set a 1", "gone a", "set b 0"]);
  expect(followed.failures).toEqual([]);
});

test("Events out of order lead to a list: what came too late is told, and nothing that is gone comes back", async () => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  await scene.create("b");
  scene.proxy.rules.add(watches, swapEvents, { times: 2 });
  const followed = await scene.follow();
  await scene.watching();
  await scene.touch("a", "1");
  await scene.touch("b", "1");
  await expectTold(followed, ["set a 0", "set b 0", "set b 1", "set a 1"]);
  await scene.watching(2);
  await scene.touch("a", "2");
  await scene.remove("a");
  await scene.watching(3);
  await scene.touch("b", "2");
  await expectTold(followed, ["set a 0", "set b 0", "set b 1", "set a 1", "gone a", "set b 2"]);
  expect(followed.codes()).toEqual(["OutOfOrder", "OutOfOrder"]);
});

test("A list of a server that lags behind is not believed: no Proxy seems to be gone, and none as it was", async () => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  scene.proxy.rules.add(lists, frozen(), { times: 3 });
  const followed = await scene.follow();
  await scene.watching();
  await scene.touch("a", "1");
  await scene.create("b");
  await expectTold(followed, ["set a 0", "set a 1", "set b 0"]);
  scene.proxy.rules.add(watches, expired);
  scene.proxy.hangUp();
  await scene.watching(2);
  await scene.touch("b", "1");
  await expectTold(followed, ["set a 0", "set a 1", "set b 0", "set b 1"]);
  expect(followed.codes().filter((code) => code === "StaleList")).toHaveLength(2);
});

test.each([
  { what: "cut off before an answer", fault: dropRequest, code: "Unreachable" },
  { what: "refused with 500", fault: refuse(500, "InternalError"), code: "ServerError" },
  { what: "refused with 503", fault: refuse(503, "ServiceUnavailable"), code: "Unavailable" },
  { what: "refused with 429", fault: tooManyRequests(0), code: "TooManyRequests" },
  { what: "answered with 409", fault: refuse(409, "Conflict"), code: "Conflict" },
  { what: "interrupted by what is no JSON", fault: garbageAfter(0), code: "UnexpectedAnswer" },
])("A watch that is $what, twice, is tried again and resumes without a list", async ({ fault, code }) => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  const followed = await scene.follow();
  await scene.watching();
  scene.proxy.rules.add(watches, fault, { times: 2 });
  scene.proxy.hangUp();
  await scene.touch("a", "1");
  await expectTold(followed, ["set a 0", "set a 1"]);
  expect(followed.codes().filter((one) => one === code).length).toBeGreaterThanOrEqual(2);
  expect(followed.missed()).toBe(0);
});

test.each([
  { what: "is no JSON", fault: garbage },
  { what: "ends in the middle", fault: truncated },
  { what: "is an error", fault: refuse(500, "InternalError") },
])("A list whose answer $what makes nothing gone, and is tried again", async ({ fault }) => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  await scene.create("b");
  const followed = await scene.follow();
  await scene.watching();
  const rule = scene.proxy.rules.add(lists, fault, { times: 2 });
  await scene.proxy.refuseConnections();
  scene.proxy.rules.add(watches, expired);
  await scene.remove("b");
  await scene.proxy.listen();
  await expectTold(followed, ["set a 0", "set b 0", "gone b"]);
  expect(rule.hits).toBe(2);
});

test("While the lists that come now and then fail, the watch goes on, and they are tried again", async () => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  const followed = await scene.follow({ relistMs: 100, lastBackoffMs: 100 });
  await scene.watching();
  const rule = scene.proxy.rules.add(lists, refuse(500, "InternalError"), { times: Number.POSITIVE_INFINITY });
  await vi.waitFor(() => expect(rule.hits).toBeGreaterThanOrEqual(4), 10_000);
  await scene.touch("a", "1");
  await expectTold(followed, ["set a 0", "set a 1"]);
  expect(new Set(followed.codes())).toEqual(new Set(["ServerError"]));
  const listed = scene.count("list") - rule.hits;
  rule.remove();
  await vi.waitFor(() => expect(scene.count("list") - rule.hits).toBeGreaterThan(listed), 10_000);
});

test("A list and a watch that get no answer end at their deadline, and are tried again", async () => {
  const scene = await Scene.begin(api, { deadlineMs: 1_000 });
  await scene.create("a");
  const rules = [scene.proxy.rules.add(lists, blackHole), scene.proxy.rules.add(watches, blackHole)];
  const followed = await scene.follow();
  await scene.watching();
  await scene.touch("a", "1");
  await expectTold(followed, ["set a 0", "set a 1"]);
  expect(followed.codes().filter((code) => code === "Timeout").length).toBeGreaterThanOrEqual(2);
  expect(rules.map(({ hits }) => hits)).toEqual([1, 1]);
});

test("While the API server is away the watch tries again, and tells everything once it is back", async () => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  const followed = await scene.follow();
  await scene.watching();
  await scene.proxy.refuseConnections();
  await scene.touch("a", "1");
  await vi.waitFor(() => expect(followed.failures.length).toBeGreaterThanOrEqual(4), 10_000);
  await scene.proxy.listen();
  await expectTold(followed, ["set a 0", "set a 1"]);
  expect(new Set(followed.codes())).toEqual(new Set(["Unreachable"]));
});
