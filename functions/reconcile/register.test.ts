import { expect, test } from "vitest";
import type { Effect } from "#shared/domain/plan-reconcile.ts";
import type { Situation } from "#shared/domain/situation.ts";
import { Failure } from "#shared/errors/failure.ts";
import { finalizer } from "#shared/model/names.ts";
import { makeInstance, makeProxy } from "#test/fixtures/proxy.ts";
import { makeSituation, readyStatus } from "#test/fixtures/situation.ts";
import { register } from "./register.ts";

const uid = makeProxy().metadata.uid;
const values = { auth: { username: "crawler", password: "secret" }, cloudInit: undefined };
const superseded = new Failure({ class: "Transient", code: "Superseded", message: "a newer run has the key" });

/** What the registry was told, in order. */
async function told(situation: Situation, options: { effects?: Effect[]; hidden?: boolean; late?: boolean } = {}) {
  const calls: unknown[][] = [];
  const wrote = { written: true, record: { verdict: undefined, trouble: undefined, leases: 0 } };
  const fleet: Parameters<typeof register>[3] = {
    upsert: (entry) => Promise.resolve(wrote).finally(() => calls.push(["upsert", entry])),
    amend: (entry) => Promise.resolve(wrote).finally(() => calls.push(["amend", entry])),
    keepOnly: (key, stays, gone) => Promise.resolve(0).finally(() => calls.push(["keep only", key, stays, gone])),
  };
  const check = (): Promise<void> => (options.late ? Promise.reject(superseded) : Promise.resolve());
  const outcome = await register(situation, options.effects ?? [], options.hidden ? undefined : values, fleet, {
    token: 7,
    check,
  }).catch((error: unknown) => error);
  return { calls, outcome };
}

const ready = makeSituation({ proxy: makeProxy({ status: readyStatus() }), view: { kind: "unread" } });
const onlyFirst = ["keep only", "crawl/p1", `${uid}:1`, []];

test("a settled Proxy is registered in every run, with the verdict that its status remembers", async () => {
  const { calls } = await told(ready);
  const seed = expect.objectContaining({ healthy: true });
  const entry = { uid, incarnation: 1, host: "10.0.0.7", port: 3128, region: "", credentials: values.auth, seed };
  expect(calls).toEqual([onlyFirst, ["upsert", expect.objectContaining(entry)]]);
});

test("an instance that was just seen running is registered at its new address, without a verdict", async () => {
  const view = { kind: "seen", state: "Running", ip: "10.0.0.9", createdAt: new Date() } as const;
  const proxy = makeProxy({ status: { instance: makeInstance() } });
  const { calls } = await told(makeSituation({ proxy, view }));
  expect(calls).toEqual([onlyFirst, ["upsert", expect.objectContaining({ host: "10.0.0.9", seed: undefined })]]);
});

test("what has no address yet is only kept apart from others of its name", async () => {
  const view = { kind: "seen", state: "Provisioning", createdAt: new Date() } as const;
  const { calls } = await told(makeSituation({ proxy: makeProxy({ status: { instance: makeInstance() } }), view }));
  expect(calls).toEqual([onlyFirst]);
});

test("of an instance that the spec or a hidden Secret does not describe, only the rest is amended", async () => {
  const missing = new Failure({ class: "Transient", code: "SecretMissing", message: "no such Secret" });
  const cases: [Partial<Situation>, boolean][] = [
    [{ wanted: { specHash: "hash-2" }, configured: false, place: undefined }, false],
    [{ wanted: { failure: missing } }, true],
  ];
  for (const [overrides, hidden] of cases) {
    const { calls } = await told({ ...ready, ...overrides }, { hidden });
    expect(calls).toEqual([onlyFirst, ["amend", expect.objectContaining({ host: "10.0.0.7", max: 1 })]]);
    for (const made of ["port", "credentials", "region"]) expect(calls[1]?.[1]).not.toHaveProperty(made);
  }
});

test("an instance that cannot be read stays registered", async () => {
  const failure = new Failure({ class: "Transient", code: "Timeout", message: "no answer" });
  const { calls } = await told({ ...ready, view: { kind: "unknown", failure } });
  expect(calls).toEqual([onlyFirst, ["upsert", expect.anything()]]);
});

test("every incarnation of a Proxy that is deleted, dead or about to be replaced leaves the registry", async () => {
  const status = { ...readyStatus(), retiring: [makeInstance({ incarnation: 3 })] };
  const proxy = makeProxy({ status });
  const deletion = { deletionTimestamp: "2026-12-01T02:00:00Z", finalizers: [finalizer] };
  const stopped = { kind: "seen", state: "Stopped", createdAt: new Date() } as const;
  const instance = makeInstance({ incarnation: 4 });
  const intent: Effect = { kind: "record-intent", instance, retiring: [], reason: "IntentRecorded", message: "" };
  for (const [situation, effects] of [
    [makeSituation({ proxy: makeProxy({ metadata: deletion, status }) }), []],
    [makeSituation({ proxy, view: { kind: "absent" } }), []],
    [makeSituation({ proxy, view: stopped }), []],
    [makeSituation({ proxy, view: { kind: "unread" } }), [intent]],
  ] as const) {
    const { calls } = await told(situation, { effects: [...effects] });
    expect(calls).toEqual([["keep only", "crawl/p1", undefined, [`${uid}:1`, `${uid}:3`]]]);
  }
});

test("a retiring incarnation and a new Proxy's predecessor of the same name are driven out in any run", async () => {
  const status = { ...readyStatus(), instance: makeInstance({ incarnation: 2 }), retiring: [makeInstance()] };
  const replacing = await told({ ...ready, proxy: makeProxy({ status }) });
  expect(replacing.calls[0]).toEqual(["keep only", "crawl/p1", `${uid}:2`, [`${uid}:1`]]);
  expect((await told(makeSituation())).calls).toEqual([["keep only", "crawl/p1", undefined, []]]);
});

test("a run that is superseded writes nothing, although an emptied Redis would take it", async () => {
  expect(await told(ready, { late: true })).toEqual({ calls: [], outcome: superseded });
});
