import { afterAll, beforeAll, expect, test } from "vitest";
import { loadInstallation } from "#shared/cluster/installation.ts";
import { finalizer } from "#shared/model/names.ts";
import {
  blackHole,
  conflict,
  dropMidAnswer,
  dropRequest,
  garbage,
  loseAnswer,
  refuse,
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

const statusWrites = { verb: "patch", resource: "proxies", subresource: "status" } as const;
const patches = { verb: "patch", resource: "proxies" } as const;
const status = { phase: "Pending" } as const;

test.each([
  { what: "was lost", fault: loseAnswer },
  { what: "broke off in the middle", fault: dropMidAnswer },
  { what: "was no JSON", fault: garbage },
  { what: "ended in the middle", fault: truncated },
])("A status write whose answer $what is not written twice", async ({ fault }) => {
  const scene = await Scene.begin(api);
  const a = await scene.create("a");
  scene.proxy.rules.add(statusWrites, fault);
  const write = () => scene.client.patchStatus(a, status, scene.call);
  await expect(write()).rejects.toMatchObject({ name: "Failure", class: "Transient", ambiguous: true });
  expect(scene.count("patch")).toBe(1);
  const version = await scene.version("a");
  expect(version).not.toBe(a.metadata.resourceVersion);
  // Whoever goes on with what it has read is stopped; whoever reads again sees that nothing is left to do.
  await expect(write()).rejects.toMatchObject({ code: "Conflict", ambiguous: false });
  const now = await scene.read("a");
  expect(await scene.client.patchStatus(now, status, scene.call)).toBe(now);
  expect([scene.count("patch"), await scene.version("a")]).toEqual([2, version]);
});

test.each([
  { what: "that the server never saw", fault: dropRequest },
  { what: "that the server answered with 500", fault: refuse(500, "InternalError") },
  { what: "that a gateway answered with 503", fault: refuse(503, "ServiceUnavailable") },
])(
  "A status write $what is not repeated by itself, for it may have happened, and works the next time",
  async ({ fault }) => {
    const scene = await Scene.begin(api);
    const a = await scene.create("a");
    scene.proxy.rules.add(statusWrites, fault);
    const write = () => scene.client.patchStatus(a, status, scene.call);
    await expect(write()).rejects.toMatchObject({ class: "Transient", ambiguous: true });
    expect(scene.count("patch")).toBe(1);
    expect(await write()).toMatchObject({ status });
  },
);

test("A status write that gets no answer ends at its deadline, and may have happened", async () => {
  const scene = await Scene.begin(api);
  const a = await scene.create("a");
  scene.proxy.rules.add(statusWrites, blackHole);
  const write = scene.client.patchStatus(a, status, { ...scene.call, deadlineMs: 300 });
  await expect(write).rejects.toMatchObject({ class: "Transient", code: "Timeout", ambiguous: true });
});

test("A status write that is refused for overload is sent again, and written once", async () => {
  const scene = await Scene.begin(api);
  const a = await scene.create("a");
  scene.proxy.rules.add(statusWrites, tooManyRequests(0), { times: 2 });
  const written = await scene.client.patchStatus(a, status, scene.call);
  expect(written).toMatchObject({ status });
  expect(await scene.version("a")).toBe(written.metadata.resourceVersion);
  expect(scene.proxy.requests.map(({ status, forwarded }) => [status, forwarded]).slice(-3)).toEqual([
    [429, false],
    [429, false],
    [200, true],
  ]);
});

test("A conflict is never repeated with what was read, nor ambiguous", async () => {
  const scene = await Scene.begin(api);
  const a = await scene.create("a");
  scene.proxy.rules.add(statusWrites, conflict);
  const write = scene.client.patchStatus(a, status, scene.call);
  await expect(write).rejects.toMatchObject({ class: "Transient", code: "Conflict", ambiguous: false });
  expect(scene.count("patch")).toBe(1);
});

test("A finalizer whose answer was lost is there once, and the next run has nothing to write", async () => {
  const scene = await Scene.begin(api);
  const a = await scene.create("a", ["example.org/theirs"]);
  scene.proxy.rules.add(patches, loseAnswer);
  await expect(scene.client.addFinalizer(a, scene.call)).rejects.toMatchObject({ ambiguous: true });
  await expect(scene.client.addFinalizer(a, scene.call)).rejects.toMatchObject({ code: "Conflict" });
  const now = await scene.read("a");
  expect(now.metadata.finalizers).toEqual(["example.org/theirs", finalizer]);
  expect(await scene.client.addFinalizer(now, scene.call)).toBe(now);
});

test("Removing a finalizer survives a lost answer and a conflict, and takes nobody else's", async () => {
  const scene = await Scene.begin(api);
  const a = await scene.create("a", [finalizer, "example.org/theirs"]);
  scene.proxy.rules.add(patches, loseAnswer);
  await expect(scene.client.removeFinalizer(a, scene.call)).rejects.toMatchObject({ ambiguous: true });
  await scene.client.removeFinalizer(a, scene.call);
  expect((await scene.read("a")).metadata.finalizers).toEqual(["example.org/theirs"]);
  const b = await scene.create("b", [finalizer]);
  scene.proxy.rules.add(patches, conflict, { times: 2 });
  await scene.client.removeFinalizer(b, scene.call);
  expect((await scene.read("b")).metadata.finalizers).toEqual([]);
});

test("An installation whose record's answer was lost is found again: one id, one key", async () => {
  const scene = await Scene.begin(api);
  const { namespace, connection, proxy, call } = scene;
  const options = { connection, namespace, releaseName: "egress" };
  proxy.rules.add({ verb: "create", resource: "configmaps" }, loseAnswer);
  proxy.rules.add({ verb: "create", resource: "secrets" }, loseAnswer);
  const lost = { class: "Transient", ambiguous: true };
  await expect(loadInstallation(options, call)).rejects.toMatchObject(lost);
  await expect(loadInstallation(options, call)).rejects.toMatchObject(lost);
  const first = await loadInstallation(options, call);
  expect(await loadInstallation(options, call)).toEqual(first);
  expect(scene.count("create")).toBe(2);
});
