import type { ConditionReason } from "#shared/model/condition.ts";
import { finalizer } from "#shared/model/names.ts";
import { secretsOf } from "#shared/model/proxy.ts";
import type { InstanceRecord } from "#shared/model/proxy-status.ts";
import { instanceName } from "./instance-name.ts";
import { isAsWanted, isDead, recordedInstances, type Situation } from "./situation.ts";
import { specHashVersion } from "./spec-hash.ts";

/** Something that changes the world outside. */
export type Effect =
  | { kind: "add-finalizer" }
  /** Written before the backend is called, so that no crash can lose what was created. */
  | {
      kind: "record-intent";
      instance: InstanceRecord;
      retiring: InstanceRecord[];
      reason: ConditionReason;
      message: string;
    }
  | { kind: "create"; instance: InstanceRecord }
  | { kind: "delete"; instance: InstanceRecord }
  | { kind: "remove-finalizer" };

/** An instance that died is not replaced sooner than this after its intent: a broken image must not spin. */
export const replaceIntervalMs = 30_000;

/** With so many incarnations not gone yet, no further one is begun. */
const mostRetiring = 4;

/**
 * What to do now. At most one effect takes effect in a run: the first that does ends it. A later one in the list is
 * tried only when the one before failed or is still going, so that an unreachable create never keeps an old instance
 * alive and a stuck delete never holds back a new one.
 */
export function planReconcile(situation: Situation): Effect[] {
  const { metadata } = situation.proxy;
  if (metadata.deletionTimestamp !== undefined) return planDeletion(situation);
  if (!metadata.finalizers.includes(finalizer)) return [{ kind: "add-finalizer" }];
  if (!situation.configured) return [];
  const intent = planIntent(situation);
  if (intent !== undefined) return [intent];
  return [...planCreate(situation), ...planRetirement(situation)];
}

function planDeletion(situation: Situation): Effect[] {
  if (!situation.proxy.metadata.finalizers.includes(finalizer)) return []; // the rest is somebody else's to remove
  const recorded = recordedInstances(situation.proxy.status);
  if (recorded.length === 0) return [{ kind: "remove-finalizer" }];
  if (!situation.configured) return [];
  return recorded.map((instance) => ({ kind: "delete", instance }));
}

function planCreate({ proxy, wanted }: Situation): Effect[] {
  const { instance } = proxy.status;
  if (instance === undefined || instance.providerID !== undefined || "failure" in wanted) return [];
  return [{ kind: "create", instance }];
}

function planRetirement({ proxy }: Situation): Effect[] {
  return (proxy.status.retiring ?? []).map((instance) => ({ kind: "delete", instance }));
}

function planIntent(situation: Situation): Effect | undefined {
  const { proxy, wanted, place, now } = situation;
  const why = reasonForNewIncarnation(situation);
  if (why === undefined || "failure" in wanted || place === undefined || "failure" in place) return undefined;
  const current = proxy.status.instance;
  const retiring = [...(current === undefined ? [] : [current]), ...(proxy.status.retiring ?? [])];
  if (retiring.length > mostRetiring || waitBeforeReplaceMs(situation) > 0) return undefined;
  const incarnation = 1 + Math.max(0, ...retiring.map((each) => each.incarnation));
  const name = instanceName({ installation: situation.installation, uid: proxy.metadata.uid, incarnation });
  const stamp = { specHash: wanted.specHash, specHashVersion, intentTime: now.toISOString() };
  return { kind: "record-intent", instance: { name, incarnation, zone: place.zone, ...stamp }, retiring, ...why };
}

interface Why {
  reason: ConditionReason;
  message: string;
}

/** The facts that call for a new incarnation, in the order in which they are told to the user. */
export function reasonForNewIncarnation(situation: Situation): Why | undefined {
  const { proxy, view } = situation;
  const { instance } = proxy.status;
  if (instance === undefined) return { reason: "IntentRecorded", message: "About to create the instance." };
  if (view.kind === "absent")
    return { reason: "InstanceVanished", message: `Instance ${instance.name} is gone; making a new one.` };
  if (view.kind === "seen" && (view.state === "Stopped" || view.state === "Terminated")) {
    const detail = view.message === undefined ? "" : ` (${view.message})`;
    return { reason: "InstanceStopped", message: `Instance ${instance.name} has stopped${detail}; making a new one.` };
  }
  if (isAsWanted(situation) !== false) return undefined;
  const what =
    secretsOf(proxy).length > 0 ? "The spec, or a Secret that it names, has changed" : "The spec has changed";
  return { reason: "IntentRecorded", message: `${what}; making a new instance.` };
}

/**
 * How long a dead instance's successor has to wait, in milliseconds; 0 when nothing holds it back. A spec that has
 * changed since does not wait: it may be the mending of what it died of.
 */
export function waitBeforeReplaceMs(situation: Situation): number {
  const { proxy, view, now } = situation;
  const { instance } = proxy.status;
  if (instance === undefined || !isDead(view) || isAsWanted(situation) === false) return 0;
  return Math.max(0, Date.parse(instance.intentTime) + replaceIntervalMs - now.getTime());
}
