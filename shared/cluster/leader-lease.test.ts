import { afterAll, beforeAll, expect, test } from "vitest";
import { TestApi } from "#test/kubernetes-api.ts";
import { ClusterConnection } from "./connection.ts";
import { LeaderLease } from "./leader-lease.ts";

let api: TestApi;
let connection: ClusterConnection;

beforeAll(async () => {
  api = await TestApi.start();
  connection = ClusterConnection.load({ kubeconfigFile: api.kubeconfigFile, userAgent: "tester" });
});

afterAll(async () => {
  await connection.close();
  await api.stop();
});

const call = { signal: new AbortController().signal };
const leaseOf = (name: string) => new LeaderLease({ connection, namespace: api.namespace, name });
const specOf = async (name: string) =>
  (await api.call("GET", `/apis/coordination.k8s.io/v1/namespaces/${api.namespace}/leases/${name}`)).body.spec;

test("A Lease is made, renewed and given back; the holder changes hands once", async () => {
  const lease = leaseOf("life");
  expect(await lease.read(call)).toBeUndefined();
  const taken = await lease.write({ holder: "a", durationMs: 15_000 }, undefined, call);
  expect(taken).toMatchObject({ holder: "a", durationMs: 15_000, transitions: 1 });
  const renewed = await lease.write({ holder: "a", durationMs: 15_000 }, taken, call);
  expect(renewed.transitions).toBe(1);
  expect(renewed.resourceVersion).not.toBe(taken.resourceVersion);
  expect(await specOf("life")).toMatchObject({ holderIdentity: "a", leaseDurationSeconds: 15 });
  await lease.write({ holder: "", durationMs: 15_000 }, renewed, call);
  expect(await lease.read(call)).toMatchObject({ holder: "", transitions: 1 });
});

test("Of two that want it at the same time one gets it", async () => {
  const lease = leaseOf("race");
  const want = (holder: string, before: Parameters<typeof lease.write>[1]) =>
    lease.write({ holder, durationMs: 15_000 }, before, call).then(
      () => holder,
      ({ code }) => String(code),
    );
  expect((await Promise.all([want("a", undefined), want("b", undefined)])).toSorted()[0]).toBe("AlreadyExists");
  const before = await lease.read(call);
  expect(await Promise.all([want("c", before), want("d", before)])).toContain("Conflict");
});

test("The time of the renewal is told with microseconds, as kubectl and others read it", async () => {
  await leaseOf("time").write({ holder: "a", durationMs: 15_000 }, undefined, call);
  expect(await specOf("time")).toMatchObject({
    renewTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
  });
});
