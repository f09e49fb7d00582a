import type { AgentPod } from "./agent-pod.ts";
import type { SecretFiles } from "./pod-files.ts";

export interface PodHandlers {
  /** The Pod is there, and is or was changed to this. The same state may come several times. */
  changed: (pod: AgentPod) => void;
  /** There is no Pod of that uid any more. */
  gone: (uid: string) => void;
}

/** The Kubernetes API as the agent uses it. Every method rejects with a `Failure`; a missing object is NotFound. */
export interface AgentCluster {
  /** Follows the Pods that carry our mark, of its namespace or of all, until `signal` fires; then it resolves. Never rejects. */
  follow(handlers: PodHandlers, signal: AbortSignal): Promise<void>;
  readSecret(namespace: string, name: string, signal: AbortSignal): Promise<SecretFiles>;
  /** Puts the Pod on a node, as a scheduler does. */
  bind(pod: AgentPod, nodeName: string, signal: AbortSignal): Promise<void>;
  /** Only on the very Pod, never on a later one of the same name; so does `remove`. */
  writeStatus(pod: AgentPod, status: Record<string, unknown>, signal: AbortSignal): Promise<void>;
  /** Says that nothing of the Pod runs any more: the API forgets it. Done as well when it has already. */
  remove(pod: AgentPod, signal: AbortSignal): Promise<void>;
}
