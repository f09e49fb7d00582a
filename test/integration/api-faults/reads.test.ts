import { afterAll, beforeAll, expect, test } from "vitest";
import {
  blackHole,
  dropMidAnswer,
  dropRequest,
  frozen,
  garbage,
  lateAnswer,
  loseAnswer,
  refuse,
  slowBody,
  tooManyRequests,
  truncated,
} from "#test/fakes/api-proxy/faults.ts";
import { TestApi } from "#test/kubernetes-api.ts";
import { Scene } from "./scene.ts";

let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start();
});
afterAll(() => api.stop());

const gets = { verb: "get", resource: "proxies" } as const;
const lists = { verb: "list", resource: "proxies" } as const;
const never = new Promise<void>(() => undefined);

test.each([
  { what: "the connection ends before the request is seen", fault: dropRequest },
  { what: "the answer is lost", fault: loseAnswer },
  { what: "the connection ends in the middle of the answer", fault: dropMidAnswer },
  { what: "the answer is no JSON", fault: garbage },
  { what: "the answer ends in the middle", fault: truncated },
  { what: "the server sheds load with 429", fault: tooManyRequests(0) },
  { what: "the server is not ready", fault: refuse(503, "ServiceUnavailable") },
])("A read and a list are repeated when $what", async ({ fault }) => {
  const scene = await Scene.begin(api);
  const a = await scene.create("a");
  scene.proxy.rules.add(gets, fault);
  scene.proxy.rules.add(lists, fault);
  expect(await scene.read("a")).toEqual(a);
  const { proxies, unreadable } = await scene.client.list({ namespaces: [scene.namespace] }, scene.call);
  expect([proxies, unreadable]).toEqual([[a], []]);
  expect([scene.count("get"), scene.count("list")]).toEqual([3, 2]);
});

test.each([
  { what: "gets no answer", fault: blackHole },
  { what: "gets half an answer and then nothing", fault: slowBody(never) },
])("A read that $what ends at its deadline, and is a Failure that may pass", async ({ fault }) => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  scene.proxy.rules.add(gets, fault);
  const read = scene.client.get({ namespace: scene.namespace, name: "a" }, { ...scene.call, deadlineMs: 300 });
  await expect(read).rejects.toMatchObject({ name: "Failure", class: "Transient", code: "Timeout", ambiguous: false });
});

test.each([
  { what: "late", fault: lateAnswer },
  { what: "slowly", fault: slowBody },
])("An answer that comes $what, but before the deadline, is an answer", async ({ fault }) => {
  const scene = await Scene.begin(api);
  const a = await scene.create("a");
  const release = Promise.withResolvers<void>();
  const rule = scene.proxy.rules.add(gets, fault(release.promise));
  const read = scene.read("a");
  await expect.poll(() => rule.hits).toBe(1);
  release.resolve();
  expect(await read).toEqual(a);
});

test.each([
  { what: "is no JSON", fault: garbage, code: "UnexpectedAnswer" },
  { what: "ends in the middle", fault: truncated, code: "UnexpectedAnswer" },
  { what: "is lost", fault: loseAnswer, code: "Unreachable" },
  { what: "is an error of the server", fault: refuse(500, "InternalError"), code: "ServerError" },
])(
  "A read whose every answer $what fails in a way that may pass, proves nothing and quotes nothing",
  async ({ fault, code }) => {
    const scene = await Scene.begin(api);
    await scene.create("a");
    scene.proxy.rules.add({ resource: "proxies" }, fault, { times: Number.POSITIVE_INFINITY });
    const failure = {
      name: "Failure",
      class: "Transient",
      code,
      message: expect.not.stringMatching(/service|metadata/),
    };
    await expect(scene.read("a")).rejects.toMatchObject(failure);
    await expect(scene.client.list({ namespaces: [scene.namespace] }, scene.call)).rejects.toMatchObject(failure);
  },
);

test("An answer that is JSON and no Proxy proves nothing about the Proxy", async () => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  const body = Buffer.from('{"metadata":{"resourceVersion":"1"},"items":[{}]}');
  scene.proxy.rules.add(
    { resource: "proxies" },
    async (exchange) => exchange.answer({ ...(await exchange.forward()), body }),
    { times: Number.POSITIVE_INFINITY },
  );
  const failure = { name: "Failure", class: "Transient", code: "UnexpectedAnswer" };
  await expect(scene.read("a")).rejects.toMatchObject(failure);
  await expect(scene.client.list({ namespaces: [scene.namespace] }, scene.call)).rejects.toMatchObject(failure);
});

test("A list whose snapshot expires between two pages starts again, and shows each Proxy once", async () => {
  const scene = await Scene.begin(api);
  const a = await scene.create("a");
  scene.proxy.rules.add(lists, refuse(410, "Expired"));
  const { proxies } = await scene.client.list({ namespaces: [scene.namespace] }, scene.call);
  expect(proxies).toEqual([a]);
});

test("A read of a server that lags behind leads to no write", async () => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  scene.proxy.rules.add(gets, frozen(), { times: 2 });
  await scene.read("a");
  await scene.touch("a", "1");
  const stale = await scene.read("a");
  const version = await scene.version("a");
  const conflict = { class: "Transient", code: "Conflict" };
  await expect(scene.client.patchStatus(stale, { phase: "Pending" }, scene.call)).rejects.toMatchObject(conflict);
  await expect(scene.client.addFinalizer(stale, scene.call)).rejects.toMatchObject(conflict);
  expect(await scene.version("a")).toBe(version);
});

test("While connections are refused a read fails and a write is certain not to have happened; then both work", async () => {
  const scene = await Scene.begin(api);
  const a = await scene.create("a");
  await scene.proxy.refuseConnections();
  await expect(scene.read("a")).rejects.toMatchObject({ class: "Transient", code: "Unreachable" });
  const write = () => scene.client.patchStatus(a, { phase: "Pending" }, scene.call);
  await expect(write()).rejects.toMatchObject({ class: "Transient", code: "Unreachable", ambiguous: false });
  await scene.proxy.listen();
  expect(await write()).toMatchObject({ status: { phase: "Pending" } });
});
