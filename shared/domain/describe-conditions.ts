import type { Failure } from "#shared/errors/failure.ts";
import type { ConditionReason } from "#shared/model/condition.ts";
import type { InstanceRecord } from "#shared/model/proxy-status.ts";
import type { Said, Sayings } from "./condition-list.ts";
import type { Outcome } from "./outcome.ts";
import { reasonForNewIncarnation } from "./plan-reconcile.ts";
import { type InstanceView, isAsWanted, isProvisioned, type Situation } from "./situation.ts";

/** The incarnations that are left after the run. */
export interface InstancesAfter {
  instance?: InstanceRecord;
  retiring: InstanceRecord[];
}

/** What is to be said of each condition after a run. */
export function describeConditions(situation: Situation, outcome: Outcome, after: InstancesAfter): Sayings {
  const failure = failureOf(situation, outcome);
  const provisioned = describeProvisioned(situation, outcome, failure, after);
  const healthy = describeHealthy(situation, provisioned);
  const busy = describeProgress(situation, provisioned, failure, after);
  const ready = describeReady(situation, provisioned, healthy, failure);
  return { Provisioned: provisioned, Healthy: healthy, Ready: ready, ...busy };
}

/**
 * The failure of a run, which the user should hear of and the queue should retry: of the effects, else of the read,
 * else of what could not be resolved.
 */
export function failureOf(situation: Situation, outcome: Outcome): Failure | undefined {
  const { proxy, view, configured } = situation;
  const [failed] = outcome.failed;
  if (failed !== undefined) return failed.failure;
  if (view.kind === "unknown") return view.failure;
  if (proxy.metadata.deletionTimestamp !== undefined) return undefined;
  // Without a provider and without an instance there is nothing that a Secret or a place would be for.
  if (!configured && proxy.status.instance === undefined) return undefined;
  return unresolved(situation);
}

/** Why what is wanted cannot be made, where it has to be made; of a Secret also what it hides of a running instance. */
function unresolved(situation: Situation): Failure | undefined {
  const { proxy, wanted, place } = situation;
  if ("failure" in wanted) return wanted.failure;
  const isToBeMade =
    proxy.status.instance?.providerID === undefined || reasonForNewIncarnation(situation) !== undefined;
  return isToBeMade && place !== undefined && "failure" in place ? place.failure : undefined;
}

/** One sentence for all of the way to a running instance: seeing it start is no reason to write the status. */
const starting = "The instance is starting.";

function describeProvisioned(
  situation: Situation,
  { done }: Outcome,
  failure: Failure | undefined,
  after: InstancesAfter,
): Said {
  const { proxy, view, configured } = situation;
  const deleting = proxy.metadata.deletionTimestamp !== undefined;
  if (deleting && after.instance === undefined) return notYet("Deleting", "There is no instance.");
  // A read that was not made or failed says nothing of an instance that ran.
  const kept = isProvisioned(proxy.status) && proxy.status.endpoint !== undefined;
  if (!configured) return describeUnconfigured(situation, kept);
  if (done?.effect.kind === "record-intent") return notYet(done.effect.reason, done.effect.message);
  if (done?.effect.kind === "create") return notYet("Creating", starting);
  if (view.kind === "seen" || view.kind === "absent") return describeView(view, proxy.status.instance);
  if (kept) return provisionedSaid(proxy.status.instance);
  if (failure !== undefined) return notYet(reasonOf(failure), failure.message);
  const before = proxy.status.conditions?.find((each) => each.type === "Provisioned");
  return notYet(unfinished(before?.reason), before?.message ?? "Nothing was created yet.");
}

function describeView(
  view: Extract<InstanceView, { kind: "seen" | "absent" }>,
  instance: InstanceRecord | undefined,
): Said {
  if (view.kind === "absent") return notYet("InstanceVanished", "The instance is gone; it is about to be replaced.");
  if (view.state === "Running") return provisionedSaid(instance);
  if (view.state === "Provisioning") return notYet("Creating", view.message ?? starting);
  const detail = view.message === undefined ? "" : ` (${view.message})`;
  return notYet("InstanceStopped", `The instance has stopped${detail}; it is about to be replaced.`);
}

function notYet(reason: ConditionReason, message: string): Said {
  return { status: "False", reason, message };
}

function describeUnconfigured({ proxy }: Situation, kept: boolean): Said {
  const message = `Provider "${proxy.spec.provider}" is not in the providers file`;
  if (kept)
    return { status: "True", reason: "ProviderNotConfigured", message: `${message}: the instance is left as it is.` };
  return { status: "False", reason: "ProviderNotConfigured", message: `${message}: add it there.` };
}

function provisionedSaid(instance: InstanceRecord | undefined): Said {
  return { status: "True", reason: "Provisioned", message: `Instance ${instance?.name} is running.` };
}

/** Reasons that an unfinished creation keeps from run to run. */
function unfinished(reason: string | undefined): ConditionReason {
  if (reason === "Creating" || reason === "InstanceStopped" || reason === "InstanceVanished") return reason;
  return "IntentRecorded";
}

function reasonOf(failure: Failure): ConditionReason {
  if (failure.code === "NameConflict") return "NameConflict";
  if (failure.class === "QuotaExceeded") return "QuotaExceeded";
  return failure.class === "Permanent" ? "PermanentError" : "TransientError";
}

function describeHealthy({ verdict, trouble }: Situation, provisioned: Said): Said {
  if (provisioned.status !== "True" || verdict === undefined) {
    const last = trouble === undefined ? "" : ` The last probe failed: ${trouble}`;
    const message = `There is no verdict of the health probe yet.${last}`;
    return { status: "Unknown", reason: "ProbePending", message };
  }
  return {
    status: verdict.healthy ? "True" : "False",
    reason: verdict.healthy ? "ProbeSucceeded" : "ProbeFailed",
    message: verdict.message,
  };
}

function describeReady(situation: Situation, provisioned: Said, healthy: Said, failure: Failure | undefined): Said {
  const { proxy } = situation;
  if (proxy.metadata.deletionTimestamp !== undefined)
    return { status: "False", reason: "Deleting", message: "The Proxy is being deleted." };
  if (provisioned.status !== "True") return { ...provisioned, status: "False" };
  if (healthy.status !== "True") return { ...healthy, status: "False" };
  if (!isLeasable(situation)) return describeHidden(situation, failure);
  return { status: "True", reason: "Ready", message: "The proxy runs and passes its probes." };
}

/** Registered, or to be registered in this very run. */
function isLeasable(situation: Situation): boolean {
  return situation.registered || isAsWanted(situation) === true;
}

/** It runs, but Redis was emptied, and nobody can tell any more with which port and credentials it was made. */
function describeHidden({ configured }: Situation, failure: Failure | undefined): Said {
  const reason = failure === undefined ? (configured ? "Creating" : "ProviderNotConfigured") : reasonOf(failure);
  const cause = failure?.message ?? "The spec has changed since the instance was made.";
  return { status: "False", reason, message: `It cannot be leased: ${cause}` };
}

/** Reconciling or Stalled, never both, neither at rest: what kstatus, Flux and Argo CD read. */
function describeProgress(
  situation: Situation,
  provisioned: Said,
  failure: Failure | undefined,
  after: InstancesAfter,
): Sayings {
  const { proxy, configured } = situation;
  const { retiring } = after;
  if (proxy.metadata.deletionTimestamp !== undefined) return describeDeletion(situation, failure, after);
  if (failure?.class === "Permanent") {
    const reason = failure.code === "NameConflict" ? "NameConflict" : "PermanentError";
    return { Stalled: { status: "True", reason, message: failure.message } };
  }
  if (failure !== undefined) return reconciling("WaitingForRetry", failure.message);
  if (!configured) return provisioned.status === "True" ? {} : reconciling("WaitingForRetry", provisioned.message);
  if (retiring.length > 0)
    return reconciling("Replacing", `Waiting for ${retiring.map((each) => each.name).join(", ")} to go.`);
  return provisioned.status === "True" ? {} : reconciling("Creating", provisioned.message);
}

function reconciling(reason: ConditionReason, message: string): Sayings {
  return { Reconciling: { status: "True", reason, message } };
}

function describeDeletion(
  { proxy, configured }: Situation,
  failure: Failure | undefined,
  { instance, retiring }: InstancesAfter,
): Sayings {
  const { provider } = proxy.spec;
  if (!configured && (instance !== undefined || retiring.length > 0)) {
    const message = `Provider "${provider}" is not in the providers file, so its instance cannot be deleted: add it there again.`;
    return { Stalled: { status: "True", reason: "DeletionBlocked", message } };
  }
  if (failure?.class === "Permanent")
    return { Stalled: { status: "True", reason: "DeletionBlocked", message: failure.message } };
  if (failure !== undefined)
    return { Reconciling: { status: "True", reason: "WaitingForRetry", message: failure.message } };
  return reconciling("Deleting", "Deleting the instance.");
}
