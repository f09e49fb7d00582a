import { describe, expect, test } from "vitest";
import { nothingDone, type Outcome } from "#shared/domain/outcome.ts";
import type { Effect } from "#shared/domain/plan-reconcile.ts";
import { Failure } from "#shared/errors/failure.ts";
import type { Condition } from "#shared/model/condition.ts";
import type { ProxyStatus } from "#shared/model/proxy-status.ts";
import { makeInstance } from "#test/fixtures/proxy.ts";
import { readyStatus } from "#test/fixtures/situation.ts";
import { eventsOf } from "./events.ts";

const instance = makeInstance();
const pending: ProxyStatus = { instance };
const did = (effect: Effect): Outcome => ({ ...nothingDone, done: { effect } });
const failed = (effect: Effect, code: string): Outcome => ({
  ...nothingDone,
  failed: [{ effect, failure: new Failure({ class: "Transient", code, message: "it did not work" }) }],
});
const reasons = (before: ProxyStatus, after: ProxyStatus, outcome: Outcome = nothingDone): string[] =>
  eventsOf(before, after, outcome).map(({ type, reason }) => `${type} ${reason}`);

describe("what people are told", () => {
  const intent = { kind: "record-intent", instance, message: "why" } as const;
  const old = [makeInstance({ incarnation: 0 })];

  test.each<[string, Effect, string[]]>([
    ["nothing of the first intent", { ...intent, retiring: [], reason: "IntentRecorded" }, []],
    ["of a replacement", { ...intent, retiring: old, reason: "IntentRecorded" }, ["Normal InstanceReplaced"]],
    ["of one that died", { ...intent, retiring: old, reason: "InstanceStopped" }, ["Warning InstanceReplaced"]],
    ["of one that vanished", { ...intent, retiring: old, reason: "InstanceVanished" }, ["Warning InstanceVanished"]],
    ["of a create", { kind: "create", instance }, ["Normal InstanceCreateRequested"]],
    ["of a delete", { kind: "delete", instance }, ["Normal InstanceDeleted"]],
    [
      "nothing of the deletion of what was never made",
      { kind: "delete", instance: makeInstance({ providerID: undefined }) },
      [],
    ],
    ["nothing of the finalizer", { kind: "add-finalizer" }, []],
  ])("%s", (_, effect, expected) => {
    expect(reasons(pending, pending, did(effect))).toEqual(expected);
  });

  test.each<[Effect, string, string[]]>([
    [{ kind: "create", instance }, "Timeout", ["Warning InstanceCreateFailed"]],
    [{ kind: "create", instance }, "NameConflict", ["Warning NameConflict"]],
    [{ kind: "delete", instance }, "Timeout", ["Warning DeletionBlocked"]],
    [{ kind: "add-finalizer" }, "Conflict", []],
  ])("of the failure of %o with %s", (effect, code, expected) => {
    expect(reasons(pending, pending, failed(effect, code))).toEqual(expected);
  });

  test("once that it runs, and once that it is ready", () => {
    expect(reasons(pending, readyStatus())).toEqual(["Normal InstanceLaunched", "Normal InstanceReady"]);
    expect(reasons(readyStatus(), readyStatus())).toEqual([]);
  });

  const saying = (type: string, status: Condition["status"], reason: string, message = reason): ProxyStatus => ({
    conditions: [{ type, status, reason, message, lastTransitionTime: "2026-12-01T00:00:00Z" }],
  });

  test.each([
    ["a Secret is missing", saying("Reconciling", "True", "WaitingForRetry")],
    ["a provider is not configured", saying("Provisioned", "False", "ProviderNotConfigured")],
    ["a deletion cannot go on", saying("Stalled", "True", "DeletionBlocked")],
    ["the probes fail", saying("Healthy", "False", "ProbeFailed")],
  ])("once that %s", (_, status) => {
    expect(reasons(pending, status)).toEqual([`Warning ${status.conditions?.[0]?.reason}`]);
    expect(reasons(status, status)).toEqual([]);
  });

  test("a failure of an effect once, although the conditions say it, too", () => {
    const after = saying("Reconciling", "True", "WaitingForRetry", "it did not work");
    const outcome = failed({ kind: "create", instance }, "Timeout");
    expect(reasons(pending, after, outcome)).toEqual(["Warning InstanceCreateFailed"]);
  });
});
