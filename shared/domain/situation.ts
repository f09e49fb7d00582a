import type { Failure } from "#shared/errors/failure.ts";
import type { Proxy } from "#shared/model/proxy.ts";
import type { InstanceRecord, ProxyStatus } from "#shared/model/proxy-status.ts";
import { specHashVersion } from "./spec-hash.ts";

/** Everything that a reconcile run knows before it decides. Gathered by reads alone. */
export interface Situation {
  proxy: Proxy;
  now: Date;
  installation: string;
  /** Whether this process has a provider of the Proxy's name. */
  configured: boolean;
  /** Fingerprint of what an instance would be made from now, or why that cannot be told. */
  wanted: { specHash: string } | { failure: Failure };
  /** Where an instance would go, or why there is no place for it. Undefined without a provider. */
  place: { zone: string } | { failure: Failure } | undefined;
  view: InstanceView;
  /** What the probes last said of the current incarnation. */
  verdict: Verdict | undefined;
  /** What they failed of last, while there is no verdict yet. */
  trouble?: string | undefined;
  /** Whether the current incarnation is in the registry, that is: can be probed and leased. */
  registered: boolean;
}

/** What a read of the current incarnation said. */
export type InstanceView =
  /** Nothing was created yet, as far as we know. */
  | { kind: "none" }
  /** It was not read: it is settled, or going away, or there is no provider to ask. */
  | { kind: "unread" }
  | {
      kind: "seen";
      state: "Provisioning" | "Running" | "Stopped" | "Terminated";
      ip?: string;
      createdAt: Date;
      message?: string;
    }
  /** Proven gone. */
  | { kind: "absent" }
  /** It could not be read. */
  | { kind: "unknown"; failure: Failure };

export interface Verdict {
  healthy: boolean;
  latencyMs?: number | undefined;
  /** The address that the probe's echo saw. */
  observedIP?: string | undefined;
  message: string;
  at: Date;
}

/**
 * Whether the current incarnation was made from what is wanted now, so that the spec also says what it listens on and
 * who may use it. Undefined where that cannot be told: a Secret is missing. One stamped by another version of the hash
 * is taken for as wanted, like everywhere.
 */
export function isAsWanted({ proxy, wanted }: Pick<Situation, "proxy" | "wanted">): boolean | undefined {
  const { instance } = proxy.status;
  if (instance === undefined || "failure" in wanted) return undefined;
  return instance.specHashVersion !== specHashVersion || instance.specHash === wanted.specHash;
}

/** Whether the current incarnation was read and does not run any more. */
export function isDead(view: InstanceView): boolean {
  return view.kind === "absent" || (view.kind === "seen" && (view.state === "Stopped" || view.state === "Terminated"));
}

/** Whether the current incarnation was seen running, according to the status. */
export function isProvisioned(status: ProxyStatus): boolean {
  return status.conditions?.some((each) => each.type === "Provisioned" && each.status === "True") ?? false;
}

/**
 * A settled instance runs and passes its probes: nobody asks its provider about it.
 * Steady state thus costs a provider nothing; probes notice a death, and then it is read again.
 */
export function needsRead(proxy: Proxy, verdict: Verdict | undefined): boolean {
  const { status } = proxy;
  if (status.instance?.providerID === undefined || proxy.metadata.deletionTimestamp !== undefined) return false;
  return !(isProvisioned(status) && status.endpoint !== undefined && verdict?.healthy === true);
}

/**
 * The verdict that the status remembers, for when Redis has lost it.
 * Undefined until the current incarnation had its first one.
 */
export function rememberedVerdict(status: ProxyStatus): Verdict | undefined {
  const healthy = status.conditions?.find((each) => each.type === "Healthy");
  if (healthy === undefined || healthy.status === "Unknown" || !isProvisioned(status)) return undefined;
  return {
    healthy: healthy.status === "True",
    latencyMs: status.health?.latencyMillis,
    observedIP: status.egressIP,
    message: status.health?.message ?? healthy.message,
    at: new Date(healthy.lastTransitionTime),
  };
}

/** Every incarnation that may exist on the backend: the current one and those that retire. */
export function recordedInstances(status: ProxyStatus): InstanceRecord[] {
  return [...(status.instance === undefined ? [] : [status.instance]), ...(status.retiring ?? [])];
}
