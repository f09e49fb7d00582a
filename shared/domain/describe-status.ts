import type { InstanceRecord, Phase, ProxyStatus } from "#shared/model/proxy-status.ts";
import { conditionList, cut, type Sayings } from "./condition-list.ts";
import { describeConditions, type InstancesAfter } from "./describe-conditions.ts";
import type { Outcome } from "./outcome.ts";
import { isAsWanted, type Situation } from "./situation.ts";

/** The whole status after a run: what was there, what was seen, and what was done about it. */
export function describeStatus(situation: Situation, outcome: Outcome): ProxyStatus {
  const { proxy, now } = situation;
  const after = instancesAfter(situation, outcome);
  const { instance, retiring } = after;
  const sayings = describeConditions(situation, outcome, after);
  const running = sayings.Provisioned?.status === "True";
  const host = situation.view.kind === "seen" ? situation.view.ip : proxy.status.endpoint?.host;
  const port = portOf(situation);
  const egressIP = situation.verdict?.observedIP;
  return {
    observedGeneration: proxy.metadata.generation,
    phase: phaseOf(situation, sayings, instance),
    conditions: conditionList(proxy.status.conditions ?? [], sayings, proxy.metadata.generation, now),
    ...(instance === undefined ? {} : { instance }),
    ...(retiring.length === 0 ? {} : { retiring }),
    ...(running && host !== undefined && port !== undefined ? { endpoint: { host, port } } : {}),
    ...(running && egressIP !== undefined ? { egressIP } : {}),
    ...(running ? describeHealth(situation) : {}),
  };
}

/** The port that the instance listens on, which may be another one than the spec has by now. Undefined: not known. */
function portOf(situation: Situation): number | undefined {
  const { spec, status } = situation.proxy;
  const asWanted = isAsWanted(situation);
  if (asWanted === true) return spec.port;
  // A Secret that is missing says nothing of the port; one that was told before is known best.
  return status.endpoint?.port ?? (asWanted === false ? undefined : spec.port);
}

function instancesAfter({ proxy, view }: Situation, { done }: Outcome): InstancesAfter {
  const { instance, retiring = [] } = proxy.status;
  const effect = done?.effect;
  if (effect?.kind === "record-intent") return { instance: effect.instance, retiring: effect.retiring };
  if (effect?.kind === "delete") {
    const rest = retiring.filter((each) => each.incarnation !== effect.instance.incarnation);
    const gone = instance === undefined || instance.incarnation === effect.instance.incarnation;
    return gone ? { retiring: rest } : { instance, retiring: rest };
  }
  if (instance === undefined) return { retiring };
  const providerID = effect?.kind === "create" ? done?.providerID : instance.providerID;
  // Told with the state that follows: the time alone is not worth a write.
  const isTold = view.kind === "seen" && view.state !== "Provisioning";
  const createdTime = isTold ? view.createdAt.toISOString() : instance.createdTime;
  const learnt = {
    ...(providerID === undefined ? {} : { providerID }),
    ...(createdTime === undefined ? {} : { createdTime }),
  };
  return { instance: { ...instance, ...learnt }, retiring };
}

function phaseOf({ proxy }: Situation, sayings: Sayings, instance: InstanceRecord | undefined): Phase {
  if (proxy.metadata.deletionTimestamp !== undefined) return "Deleting";
  // What cannot be changed right now takes nothing away from what runs.
  if (sayings.Ready?.status === "True") return "Ready";
  if (sayings.Stalled !== undefined) return "Failed";
  if (sayings.Provisioned?.status === "True") return "Unhealthy";
  return instance?.providerID === undefined ? "Pending" : "Provisioning";
}

/** Changes only with the verdict: a latency that moved is no reason to write. */
function describeHealth({ proxy, verdict }: Situation): Pick<ProxyStatus, "health"> {
  if (verdict === undefined) return {};
  const before = proxy.status.conditions?.find((each) => each.type === "Healthy");
  if (proxy.status.health !== undefined && before?.status === (verdict.healthy ? "True" : "False"))
    return { health: proxy.status.health };
  const latency = verdict.latencyMs === undefined ? {} : { latencyMillis: Math.round(verdict.latencyMs) };
  return { health: { ...latency, lastTransitionTime: verdict.at.toISOString(), message: cut(verdict.message) } };
}
