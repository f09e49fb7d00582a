import { describe, expect, test } from "vitest";
import { Failure } from "#shared/errors/failure.ts";
import type { Proxy } from "#shared/model/proxy.ts";
import { type ProxyStatus, proxyStatus } from "#shared/model/proxy-status.ts";
import { makeInstance, makeProxy } from "#test/fixtures/proxy.ts";
import { makeSituation, readyStatus } from "#test/fixtures/situation.ts";
import { describeStatus } from "./describe-status.ts";
import { nothingDone, type Outcome } from "./outcome.ts";
import type { Effect } from "./plan-reconcile.ts";
import type { Situation } from "./situation.ts";

const createdAt = new Date("2026-12-01T00:00:05Z");
const deletionTimestamp = "2026-12-01T00:59:00Z";
const ready = makeProxy({ status: readyStatus() });
const verdict = {
  healthy: true,
  latencyMs: 31.4,
  observedIP: "203.0.113.9",
  message: "200 in 31 ms",
  at: new Date("2026-12-01T00:09:00Z"),
};
const failure = (kind: "Transient" | "Permanent", code = "Timeout"): Failure =>
  new Failure({ class: kind, code, message: `${code} happened` });
const deleted = (proxy: Proxy): Proxy => ({ ...proxy, metadata: { ...proxy.metadata, deletionTimestamp } });

/** `Type=Status/Reason` of each condition. */
function brief(status: ProxyStatus): string[] {
  return (status.conditions ?? []).map((each) => `${each.type}=${each.status}/${each.reason}`);
}

function status(overrides: Partial<Situation>, outcome: Outcome = nothingDone): ProxyStatus {
  return describeStatus(makeSituation(overrides), outcome);
}

describe("the life of a Proxy", () => {
  test("an intent shows as Pending", () => {
    const instance = makeInstance({ providerID: undefined });
    const effect: Effect = {
      kind: "record-intent",
      instance,
      retiring: [],
      reason: "IntentRecorded",
      message: "About to create.",
    };
    const after = status({}, { ...nothingDone, done: { effect } });
    expect(after).toMatchObject({ phase: "Pending", instance, observedGeneration: 1 });
    expect(brief(after)).toEqual([
      "Ready=False/IntentRecorded",
      "Provisioned=False/IntentRecorded",
      "Healthy=Unknown/ProbePending",
      "Reconciling=True/Creating",
    ]);
  });

  test("a create that was taken on records the id at once", () => {
    const instance = makeInstance({ providerID: undefined });
    const done = { effect: { kind: "create", instance } as const, providerID: "lab/vm-1" };
    const after = status({ proxy: makeProxy({ status: { instance } }) }, { ...nothingDone, done });
    expect(after).toMatchObject({ phase: "Provisioning", instance: { providerID: "lab/vm-1" } });
    expect(brief(after)).toContain("Provisioned=False/Creating");
  });

  test("a running instance has an endpoint, and is Unhealthy until the first verdict", () => {
    const view = { kind: "seen", state: "Running", ip: "10.0.0.7", createdAt } as const;
    const after = status({ proxy: makeProxy({ status: { instance: makeInstance() } }), view });
    expect(after).toMatchObject({
      phase: "Unhealthy",
      endpoint: { host: "10.0.0.7", port: 3128 },
      instance: { createdTime: createdAt.toISOString() },
    });
    expect(brief(after)).toEqual([
      "Ready=False/ProbePending",
      "Provisioned=True/Provisioned",
      "Healthy=Unknown/ProbePending",
    ]);
  });

  test("until then it says what its probes fail of", () => {
    const view = { kind: "seen", state: "Running", ip: "10.0.0.7", createdAt } as const;
    const after = status({ proxy: makeProxy({ status: { instance: makeInstance() } }), view, trouble: "No answer." });
    expect(after.conditions?.[0]).toMatchObject({
      reason: "ProbePending",
      message: "There is no verdict of the health probe yet. The last probe failed: No answer.",
    });
  });

  test("a good verdict makes it Ready, with the address that the echo saw", () => {
    const view = { kind: "seen", state: "Running", ip: "10.0.0.7", createdAt } as const;
    const after = status({ proxy: makeProxy({ status: { instance: makeInstance() } }), view, verdict });
    expect(after).toMatchObject({ phase: "Ready", egressIP: "203.0.113.9", health: { latencyMillis: 31 } });
    expect(brief(after)).toEqual(["Ready=True/Ready", "Provisioned=True/Provisioned", "Healthy=True/ProbeSucceeded"]);
  });

  test("a bad verdict makes it Unhealthy and says why", () => {
    const after = status({
      proxy: ready,
      view: { kind: "unread" },
      verdict: { ...verdict, healthy: false, message: "refused" },
    });
    expect(after.phase).toBe("Unhealthy");
    expect(after.conditions?.[0]).toMatchObject({
      type: "Ready",
      status: "False",
      reason: "ProbeFailed",
      message: "refused",
    });
  });

  test("deleting shows at once, and the instance leaves the status when it is gone", () => {
    const [first, last] = [status({ proxy: deleted(ready), view: { kind: "unread" } }), deleted(ready)];
    expect(first).toMatchObject({ phase: "Deleting", instance: { incarnation: 1 } });
    expect(brief(first)).toContain("Reconciling=True/Deleting");
    const gone = status(
      { proxy: last, view: { kind: "unread" } },
      { ...nothingDone, done: { effect: { kind: "delete", instance: makeInstance() } } },
    );
    expect(gone.instance).toBeUndefined();
    expect(gone.endpoint).toBeUndefined();
    expect(brief(gone)).toContain("Provisioned=False/Deleting");
  });
});

describe("trouble", () => {
  test("a transient failure waits for a retry", () => {
    const proxy = makeProxy({ status: { instance: makeInstance({ providerID: undefined }) } });
    const failed = [{ effect: { kind: "create", instance: makeInstance() } as const, failure: failure("Transient") }];
    const after = status({ proxy }, { ...nothingDone, failed });
    expect(brief(after)).toEqual([
      "Ready=False/TransientError",
      "Provisioned=False/TransientError",
      "Healthy=Unknown/ProbePending",
      "Reconciling=True/WaitingForRetry",
    ]);
  });

  test.each([
    ["PermanentError", "NoSuchZone"],
    ["NameConflict", "NameConflict"],
  ])("a permanent failure stalls as %s", (reason, code) => {
    const after = status({ place: { failure: failure("Permanent", code) } });
    expect(after.phase).toBe("Failed");
    expect(brief(after)).toContain(`Stalled=True/${reason}`);
    expect(brief(after).join()).not.toContain("Reconciling");
  });

  test("a read that failed says nothing of an instance that ran", () => {
    const after = status({ proxy: ready, view: { kind: "unknown", failure: failure("Transient") }, verdict });
    expect(after).toMatchObject({ phase: "Ready", endpoint: { host: "10.0.0.7" } });
    expect(brief(after)).toContain("Reconciling=True/WaitingForRetry");
  });

  test("an unknown provider is named, and what ran goes on", () => {
    const fresh = status({ configured: false, place: undefined });
    expect(fresh.conditions?.[0]).toMatchObject({
      reason: "ProviderNotConfigured",
      message: expect.stringContaining('"lab"'),
    });
    const running = status({ proxy: ready, configured: false, place: undefined, view: { kind: "unread" }, verdict });
    expect(running.phase).toBe("Ready");
    expect(brief(running)).toContain("Provisioned=True/ProviderNotConfigured");
  });

  test("deleting what an unknown provider holds is blocked, by name", () => {
    const after = status({ proxy: deleted(ready), configured: false, place: undefined, view: { kind: "unread" } });
    expect(after.conditions?.find((each) => each.type === "Stalled")).toMatchObject({
      reason: "DeletionBlocked",
      message: expect.stringContaining('"lab"'),
    });
  });
});

describe("writes", () => {
  test("a settled Proxy gets exactly the status that it has, so nothing is written", () => {
    const first = status({ proxy: ready, view: { kind: "unread" }, verdict });
    const again = status({
      proxy: makeProxy({ status: first }),
      view: { kind: "unread" },
      verdict: { ...verdict, latencyMs: 999 },
      now: new Date("2026-12-02"),
    });
    expect(again).toEqual(first);
  });

  test("a transition time moves only with the status", () => {
    const after = status({ proxy: ready, view: { kind: "unread" }, verdict: { ...verdict, healthy: false } });
    const times = Object.fromEntries((after.conditions ?? []).map((each) => [each.type, each.lastTransitionTime]));
    expect(times["Provisioned"]).toBe("2026-12-01T00:10:00.000Z");
    expect(times["Healthy"]).toBe("2026-12-01T01:00:00.000Z");
  });

  test("a long message is cut to what the schema takes", () => {
    const long = new Failure({ class: "Transient", code: "X", message: "x".repeat(5000) });
    const after = status({ wanted: { failure: long } });
    expect(proxyStatus.safeParse(after).success).toBe(true);
    expect(after.conditions?.[0]?.message).toMatch(/x…$/);
  });
});

describe("an instance that is not what the spec says", () => {
  const moved = makeProxy({ spec: { port: 8080 }, status: readyStatus() });
  const changed = { proxy: moved, view: { kind: "unread" }, verdict, wanted: { specHash: "hash-2" } } as const;
  const secretMissing = new Failure({ class: "Transient", code: "SecretMissing", message: "Secret crawl/x is gone." });

  test("keeps the port that it listens on, and stays Ready, while no successor can be made", () => {
    for (const overrides of [
      { ...changed, configured: false, place: undefined },
      { ...changed, place: { failure: failure("Permanent", "NoSuchZone") } },
      { ...changed, wanted: { failure: secretMissing } },
    ]) {
      const after = status(overrides);
      expect(after).toMatchObject({ phase: "Ready", endpoint: { host: "10.0.0.7", port: 3128 } });
      expect(brief(after)).toContain("Ready=True/Ready");
    }
  });

  test("says why its successor cannot be made", () => {
    const stalled = status({ ...changed, place: { failure: failure("Permanent", "NoSuchZone") } });
    expect(brief(stalled)).toContain("Stalled=True/PermanentError");
    expect(brief(status({ ...changed, wanted: { failure: secretMissing } }))).toContain(
      "Reconciling=True/WaitingForRetry",
    );
  });

  test("has no endpoint where its port was never told", () => {
    const proxy = makeProxy({ spec: { port: 8080 }, status: { instance: makeInstance() } });
    const view = { kind: "seen", state: "Running", ip: "10.0.0.7", createdAt } as const;
    const unresolved = { place: { failure: failure("Permanent") }, wanted: { specHash: "hash-2" } };
    expect(status({ proxy, view, ...unresolved }).endpoint).toBeUndefined();
    expect(status({ proxy, view, wanted: { failure: secretMissing } }).endpoint?.port).toBe(8080);
  });

  test("is not Ready where an emptied Redis has forgotten what it was made with", () => {
    const missing = status({ ...changed, registered: false, wanted: { failure: secretMissing } });
    expect(missing.conditions?.[0]).toMatchObject({ status: "False", reason: "TransientError" });
    expect(missing.conditions?.[0]?.message).toContain("Secret crawl/x is gone.");
    const unknown = status({ ...changed, registered: false, configured: false, place: undefined });
    expect(unknown.conditions?.[0]).toMatchObject({ status: "False", reason: "ProviderNotConfigured" });
    expect(brief(status({ ...changed, registered: false, wanted: { specHash: "hash-1" } }))[0]).toBe(
      "Ready=True/Ready",
    );
  });
});

test("a deletion is blocked by an unconfigured provider also when only an old incarnation is left", () => {
  const proxy = deleted(makeProxy({ status: { retiring: [makeInstance()] } }));
  expect(brief(status({ proxy, configured: false, place: undefined }))).toContain("Stalled=True/DeletionBlocked");
});

test("a message is one line, whatever a backend said", () => {
  const view = { kind: "seen", state: "Provisioning", createdAt, message: "squid died:\n  FATAL: no port\n" } as const;
  const after = status({ proxy: makeProxy({ status: { instance: makeInstance() } }), view });
  expect(after.conditions?.[0]?.message).toBe("squid died: FATAL: no port");
});
