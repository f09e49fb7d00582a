import { expect, test } from "vitest";
import type { Effect } from "#shared/domain/plan-reconcile.ts";
import { Failure } from "#shared/errors/failure.ts";
import { finalizer } from "#shared/model/names.ts";
import { makeInstance, makeProxy } from "#test/fixtures/proxy.ts";
import { makeSituation, readyStatus } from "#test/fixtures/situation.ts";
import { register } from "./register.ts";

type Fleet = Parameters<typeof register>[3];
type Entry = Parameters<Fleet["upsert"]>[0];

const uid = makeProxy().metadata.uid;
const values = { auth: { username: "crawler", password: "secret" }, cloudInit: undefined };

/** What the registry was told, in order. */
function setUp() {
  const entries: Entry[] = [];
  const removed: string[] = [];
  const fleet: Fleet = {
    upsert: (entry) => {
      entries.push(entry);
      return Promise.resolve({ written: true, record: { verdict: undefined, leases: 0 } });
    },
    remove: (id) => {
      removed.push(id);
      return Promise.resolve(true);
    },
  };
  return { fleet, entries, removed };
}

const ready = makeSituation({ proxy: makeProxy({ status: readyStatus() }), view: { kind: "unread" } });

test("a settled Proxy is registered in every run, with the verdict that its status remembers", async () => {
  const { fleet, entries } = setUp();
  await register(ready, [], values, fleet, 7);
  expect(entries).toEqual([
    expect.objectContaining({
      uid,
      incarnation: 1,
      host: "10.0.0.7",
      port: 3128,
      credentials: values.auth,
      seed: expect.objectContaining({ healthy: true }),
    }),
  ]);
});

test("an instance that was just seen running is registered at its new address, without a verdict", async () => {
  const { fleet, entries } = setUp();
  const view = { kind: "seen", state: "Running", ip: "10.0.0.9", createdAt: new Date() } as const;
  const proxy = makeProxy({ status: { instance: makeInstance() } });
  await register(makeSituation({ proxy, view }), [], values, fleet, 7);
  expect(entries).toEqual([expect.objectContaining({ host: "10.0.0.9", seed: undefined })]);
});

test("what has no address yet, or hides its credentials, is left as it is registered", async () => {
  const { fleet, entries, removed } = setUp();
  const starting = makeProxy({ status: { instance: makeInstance() } });
  const view = { kind: "seen", state: "Provisioning", createdAt: new Date() } as const;
  await register(makeSituation({ proxy: starting, view }), [], values, fleet, 7);
  await register(ready, [], undefined, fleet, 7);
  expect([entries, removed]).toEqual([[], []]);
});

test("an instance that cannot be read stays registered", async () => {
  const { fleet, entries, removed } = setUp();
  const failure = new Failure({ class: "Transient", code: "Timeout", message: "no answer" });
  await register({ ...ready, view: { kind: "unknown", failure } }, [], values, fleet, 7);
  expect([entries.length, removed]).toEqual([1, []]);
});

test("every incarnation of a Proxy that is deleted, dead or about to be replaced leaves the registry", async () => {
  const status = { ...readyStatus(), retiring: [makeInstance({ incarnation: 3 })] };
  const proxy = makeProxy({ status });
  const deleted = makeProxy({
    metadata: { deletionTimestamp: "2026-12-01T02:00:00Z", finalizers: [finalizer] },
    status,
  });
  const stopped = { kind: "seen", state: "Stopped", createdAt: new Date() } as const;
  const instance = makeInstance({ incarnation: 4 });
  const intent: Effect = { kind: "record-intent", instance, retiring: [], reason: "IntentRecorded", message: "" };
  for (const [situation, effects] of [
    [makeSituation({ proxy: deleted }), []],
    [makeSituation({ proxy, view: { kind: "absent" } }), []],
    [makeSituation({ proxy, view: stopped }), []],
    [makeSituation({ proxy, view: { kind: "unread" } }), [intent]],
  ] as const) {
    const { fleet, entries, removed } = setUp();
    await register(situation, [...effects], values, fleet, 7);
    expect([entries, removed]).toEqual([[], [`${uid}:1`, `${uid}:3`]]);
  }
});
