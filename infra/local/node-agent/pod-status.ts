import type { AgentContainer } from "./agent-pod.ts";

/** How a Pod's only container is doing. */
export type ContainerState =
  | { kind: "waiting"; reason: string; message: string }
  | { kind: "running"; startedAt: string; ready: boolean }
  | { kind: "ended"; startedAt: string; endedAt: string; exitCode: number; message: string };

export interface PodSituation {
  container: AgentContainer;
  address: string;
  /** When the agent took the Pod on; times are RFC 3339 with whole seconds, as Kubernetes wants them. */
  startTime: string;
  /** When the container became ready, or stopped being so. */
  readyChangedAt: string;
  restartCount: number;
  state: ContainerState;
  /** An ended container is started again. */
  restarts: boolean;
}

const messageLimit = 1024;

/** The status subresource, as a kubelet would write it. Pure. */
export function podStatus(situation: PodSituation): Record<string, unknown> {
  const { container, address, startTime, readyChangedAt, restartCount, state } = situation;
  const ready = state.kind === "running" && state.ready;
  const phase = phaseOf(situation);
  const failure = phase === "Failed" && state.kind === "ended" ? { reason: "Error", message: cut(state.message) } : {};
  return {
    phase,
    ...failure,
    conditions: [
      condition("PodScheduled", true, startTime),
      condition("Initialized", true, startTime),
      condition("ContainersReady", ready, readyChangedAt),
      condition("Ready", ready, readyChangedAt),
    ],
    hostIP: "127.0.0.1",
    podIP: address,
    podIPs: [{ ip: address }],
    startTime,
    containerStatuses: [
      {
        name: container.name,
        image: container.image,
        imageID: "",
        ready,
        started: state.kind === "running",
        restartCount,
        state: containerState(state),
      },
    ],
  };
}

function phaseOf({ state, restarts }: PodSituation): string {
  if (state.kind === "waiting") return "Pending";
  if (state.kind === "running" || restarts) return "Running";
  return state.exitCode === 0 ? "Succeeded" : "Failed";
}

function containerState(state: ContainerState): Record<string, unknown> {
  if (state.kind === "waiting") return { waiting: { reason: state.reason, message: cut(state.message) } };
  if (state.kind === "running") return { running: { startedAt: state.startedAt } };
  const { startedAt, endedAt, exitCode, message } = state;
  const reason = exitCode === 0 ? "Completed" : "Error";
  return { terminated: { exitCode, reason, message: cut(message), startedAt, finishedAt: endedAt } };
}

function condition(type: string, holds: boolean, lastTransitionTime: string): Record<string, unknown> {
  return { type, status: holds ? "True" : "False", lastTransitionTime };
}

/** The end of a log tells more than its beginning. */
function cut(message: string): string {
  return message.length <= messageLimit ? message : `…${message.slice(1 - messageLimit)}`;
}

/** Kubernetes knows no fractions of a second here. */
export function timestamp(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, "Z");
}
