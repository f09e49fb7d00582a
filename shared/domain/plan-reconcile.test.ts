import { describe, expect, test } from "vitest";
import { Failure } from "#shared/errors/failure.ts";
import { makeInstance, makeProxy } from "#test/fixtures/proxy.ts";
import { makeSituation, now, readyStatus } from "#test/fixtures/situation.ts";
import { type Effect, planReconcile, replaceIntervalMs } from "./plan-reconcile.ts";
import type { Situation } from "./situation.ts";

const deletionTimestamp = "2026-12-01T00:59:00Z";
const created = makeProxy({ status: { instance: makeInstance() } });
const intended = makeProxy({ status: { instance: makeInstance({ providerID: undefined }) } });
const replacing = makeProxy({
  status: { instance: makeInstance({ incarnation: 2, providerID: undefined }), retiring: [makeInstance()] },
});
const createdAt = new Date("2026-12-01T00:00:05Z");
const transient = new Failure({ class: "Transient", code: "Timeout", message: "no answer" });
const permanent = new Failure({ class: "Permanent", code: "NoSuchZone", message: "no such zone" });

function brief(effects: Effect[]): string[] {
  return effects.map((effect) =>
    "instance" in effect ? `${effect.kind} ${effect.instance.incarnation}` : effect.kind,
  );
}

const table: [string, Partial<Situation>, string[]][] = [
  [
    "a new Proxy gets the finalizer before anything else",
    { proxy: makeProxy({ metadata: { finalizers: [] } }) },
    ["add-finalizer"],
  ],
  ["with the finalizer on, the intent is recorded", {}, ["record-intent 1"]],
  ["a recorded intent is created", { proxy: intended }, ["create 1"]],
  ["without a provider nothing is done", { configured: false, place: undefined }, []],
  ["a provider that went away leaves the instance alone", { proxy: created, configured: false, place: undefined }, []],
  ["without a Secret that is needed nothing is begun", { wanted: { failure: transient } }, []],
  ["without that Secret an intent waits", { proxy: intended, wanted: { failure: transient } }, []],
  ["what has no place is not begun", { place: { failure: permanent } }, []],
  [
    "a starting instance is left alone",
    { proxy: created, view: { kind: "seen", state: "Provisioning", createdAt } },
    [],
  ],
  [
    "a running instance is left alone",
    { proxy: created, view: { kind: "seen", state: "Running", ip: "10.0.0.7", createdAt } },
    [],
  ],
  ["a settled instance is left alone", { proxy: makeProxy({ status: readyStatus() }), view: { kind: "unread" } }, []],
  [
    "an instance that cannot be read is left alone",
    { proxy: created, view: { kind: "unknown", failure: transient } },
    [],
  ],
  [
    "a stopped instance is replaced",
    { proxy: created, view: { kind: "seen", state: "Stopped", createdAt } },
    ["record-intent 2"],
  ],
  [
    "a terminated instance is replaced",
    { proxy: created, view: { kind: "seen", state: "Terminated", createdAt } },
    ["record-intent 2"],
  ],
  ["a vanished instance is replaced", { proxy: created, view: { kind: "absent" } }, ["record-intent 2"]],
  [
    "a changed spec replaces the instance",
    { proxy: created, view: { kind: "unread" }, wanted: { specHash: "hash-2" } },
    ["record-intent 2"],
  ],
  ["a changed spec also replaces an intent", { proxy: intended, wanted: { specHash: "hash-2" } }, ["record-intent 2"]],
  [
    "a Secret that vanished never replaces",
    { proxy: created, view: { kind: "unread" }, wanted: { failure: transient } },
    [],
  ],
  ["the successor is created before the old one is deleted", { proxy: replacing }, ["create 2", "delete 1"]],
  [
    "a hash of another version never replaces",
    {
      proxy: makeProxy({ status: { instance: makeInstance({ specHashVersion: "v0" }) } }),
      view: { kind: "unread" },
      wanted: { specHash: "hash-2" },
    },
    [],
  ],
  [
    "a deleted Proxy loses every incarnation",
    { proxy: { ...replacing, metadata: { ...replacing.metadata, deletionTimestamp } } },
    ["delete 2", "delete 1"],
  ],
  [
    "a deleted Proxy without an instance loses the finalizer",
    { proxy: makeProxy({ metadata: { deletionTimestamp } }) },
    ["remove-finalizer"],
  ],
  [
    "a deleted Proxy of an unknown provider keeps the finalizer while something may exist",
    {
      proxy: { ...created, metadata: { ...created.metadata, deletionTimestamp } },
      configured: false,
      place: undefined,
    },
    [],
  ],
  [
    "a deleted Proxy of an unknown provider that never began is let go",
    { proxy: makeProxy({ metadata: { deletionTimestamp } }), configured: false, place: undefined },
    ["remove-finalizer"],
  ],
  [
    "somebody else's finalizer is not ours to remove",
    { proxy: makeProxy({ metadata: { deletionTimestamp, finalizers: ["other"] } }) },
    [],
  ],
];

test.each(table)("%s", (_name, overrides, expected) => {
  expect(brief(planReconcile(makeSituation(overrides)))).toEqual(expected);
});

describe("an intent", () => {
  test("takes its zone from the placement and its name from owner and incarnation", () => {
    const [effect] = planReconcile(makeSituation({ place: { zone: "host-a" } }));
    expect(effect).toMatchObject({
      kind: "record-intent",
      instance: { zone: "host-a", incarnation: 1, specHash: "hash-1" },
    });
    expect(effect).toMatchObject({
      instance: { name: expect.stringMatching(/^proxy-[a-z2-7]{16}$/), intentTime: now.toISOString() },
    });
  });

  test("moves the old incarnation among the retiring ones in the same write", () => {
    const [effect] = planReconcile(makeSituation({ proxy: created, view: { kind: "absent" } }));
    expect(effect).toMatchObject({ reason: "InstanceVanished", retiring: [{ incarnation: 1, providerID: "id-1" }] });
  });

  test("never uses an incarnation again, whatever order the retiring ones are in", () => {
    const proxy = makeProxy({
      status: {
        instance: makeInstance({ incarnation: 3 }),
        retiring: [makeInstance({ incarnation: 7 }), makeInstance({ incarnation: 2 })],
      },
    });
    expect(brief(planReconcile(makeSituation({ proxy, view: { kind: "absent" } })))).toEqual(["record-intent 8"]);
  });

  test("for a dead instance waits, so that a broken image does not spin", () => {
    const proxy = makeProxy({ status: { instance: makeInstance({ intentTime: now.toISOString() }) } });
    const dead = makeSituation({ proxy, view: { kind: "seen", state: "Stopped", createdAt } });
    expect(planReconcile(dead)).toEqual([]);
    expect(brief(planReconcile({ ...dead, now: new Date(now.getTime() + replaceIntervalMs) }))).toEqual([
      "record-intent 2",
    ]);
  });

  test("for a dead instance does not wait when the spec has changed since: that may be its cure", () => {
    const proxy = makeProxy({ status: { instance: makeInstance({ intentTime: now.toISOString() }) } });
    const view = { kind: "seen", state: "Stopped", createdAt } as const;
    expect(brief(planReconcile(makeSituation({ proxy, view, wanted: { specHash: "hash-2" } })))).toEqual([
      "record-intent 2",
    ]);
  });

  test("names a Secret as a possible cause only where the spec names one", () => {
    const wanted = { specHash: "hash-2" };
    const why = (proxy: Situation["proxy"]) =>
      planReconcile(makeSituation({ proxy, view: { kind: "unread" }, wanted }))[0];
    expect(why(created)).toMatchObject({ message: "The spec has changed; making a new instance." });
    const spec = { auth: { secretRef: { name: "login" } } };
    expect(why({ ...created, spec: { ...created.spec, ...spec } })).toMatchObject({
      message: "The spec, or a Secret that it names, has changed; making a new instance.",
    });
  });

  test("is not recorded while many old incarnations are still going", () => {
    const retiring = [1, 2, 3, 4].map((incarnation) => makeInstance({ incarnation }));
    const proxy = makeProxy({ status: { instance: makeInstance({ incarnation: 5 }), retiring } });
    expect(brief(planReconcile(makeSituation({ proxy, view: { kind: "absent" } })))).toEqual([
      "delete 1",
      "delete 2",
      "delete 3",
      "delete 4",
    ]);
  });
});
