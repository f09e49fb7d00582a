import type { V1ContainerState, V1Pod } from "@kubernetes/client-node";
import type { InstanceState } from "../contract.ts";
import { containerName } from "./manifests.ts";

/** What a Pod means in the contract's words. `ip` is there exactly when it is Running. */
export interface PodState {
  state: InstanceState;
  ip?: string;
  message?: string;
}

const usual = new Set(["ContainerCreating", "PodInitializing"]);

/** Pure. The Pod has one container and is never restarted: whatever ended stays so. */
export function podState(pod: V1Pod): PodState {
  // Nobody can call that off any more, so a new incarnation may begin.
  if (pod.metadata?.deletionTimestamp !== undefined) return { state: "Stopped", message: "the Pod is being deleted" };
  const { phase, podIP } = pod.status ?? {};
  const squid = pod.status?.containerStatuses?.find((status) => status.name === containerName)?.state;
  if (phase === undefined || phase === "Pending") return { state: "Provisioning", ...said(whyPending(pod, squid)) };
  if (phase !== "Running")
    return { state: "Stopped", ...said(whyStopped(pod, squid) ?? `the Pod's phase is ${phase}`) };
  if (squid?.terminated !== undefined) return { state: "Stopped", ...said(whyStopped(pod, squid)) };
  if (squid?.running === undefined || !podIP) return { state: "Provisioning" };
  return { state: "Running", ip: podIP };
}

/**
 * The container's reason (ImagePullBackOff...), else the scheduler's. Not what every Pod goes through: telling that
 * would be one more write to the Proxy.
 */
function whyPending(pod: V1Pod, squid: V1ContainerState | undefined): string | undefined {
  const unscheduled = pod.status?.conditions?.find((one) => one.type === "PodScheduled" && one.status === "False");
  const isNormal = usual.has(squid?.waiting?.reason ?? "");
  return (isNormal ? undefined : sentence(squid?.waiting)) ?? sentence(unscheduled);
}

/** The kubelet's reason (Evicted...), else the container's (OOMKilled, an exit code). */
function whyStopped(pod: V1Pod, squid: V1ContainerState | undefined): string | undefined {
  const ended = squid?.terminated;
  const exit =
    ended === undefined ? undefined : `squid ended: ${sentence(ended) ?? "no reason"} (exit code ${ended.exitCode})`;
  return sentence(pod.status) ?? exit;
}

function sentence(from: { reason?: string; message?: string } | undefined): string | undefined {
  const parts = [from?.reason, from?.message].filter((part) => part !== undefined && part !== "");
  return parts.length === 0 ? undefined : parts.join(": ");
}

function said(message: string | undefined): { message?: string } {
  return message === undefined ? {} : { message };
}
