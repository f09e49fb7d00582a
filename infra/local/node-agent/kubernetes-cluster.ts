import { CoreV1Api, PatchStrategy, setHeaderOptions } from "@kubernetes/client-node";
import type { ClusterConnection } from "#shared/cluster/connection.ts";
import { isNotFound, toFailure } from "#shared/errors/failure.ts";
import type { Logger } from "#shared/telemetry/logger.ts";
import type { AgentCluster, PodHandlers } from "./agent-cluster.ts";
import type { AgentPod } from "./agent-pod.ts";
import { followForGood, PodFollower } from "./follow-pods.ts";
import type { SecretFiles } from "./pod-files.ts";

/** The real API, as an ordinary client of it. */
export class KubernetesAgentCluster implements AgentCluster {
  readonly #connection: ClusterConnection;
  readonly #log: Logger;

  constructor(deps: { connection: ClusterConnection; log: Logger }) {
    this.#connection = deps.connection;
    this.#log = deps.log;
  }

  async follow(handlers: PodHandlers, signal: AbortSignal): Promise<void> {
    const onUnreadable = (err: Error): void => this.#log.warn({ err }, "a pod does not parse");
    const follower = new PodFollower({ connection: this.#connection, handlers, onUnreadable });
    const onFailure = (err: unknown): void => this.#log.warn({ err }, "following pods failed, will be repeated");
    await followForGood(follower, { signal, onFailure });
  }

  async readSecret(namespace: string, name: string, signal: AbortSignal): Promise<SecretFiles> {
    const secret = await this.#core(signal).readNamespacedSecret({ namespace, name });
    const files = Object.entries(secret.data ?? {}).map(([key, text]) => [key, Buffer.from(text, "base64")] as const);
    return Object.fromEntries(files);
  }

  async bind({ metadata }: AgentPod, nodeName: string, signal: AbortSignal): Promise<void> {
    const { namespace, name, uid } = metadata;
    // With the uid the API refuses to bind a later Pod of the same name.
    const body = { metadata: { name, uid }, target: { apiVersion: "v1", kind: "Node", name: nodeName } };
    await this.#core(signal).createNamespacedPodBinding({ namespace, name, body });
  }

  async writeStatus({ metadata }: AgentPod, status: Record<string, unknown>, signal: AbortSignal): Promise<void> {
    const { namespace, name, uid } = metadata;
    const asMergePatch = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);
    const request = { namespace, name, body: { metadata: { uid }, status } };
    await this.#core(signal).patchNamespacedPodStatus(request, asMergePatch);
  }

  async remove({ metadata }: AgentPod, signal: AbortSignal): Promise<void> {
    const { namespace, name, uid } = metadata;
    const body = { gracePeriodSeconds: 0, preconditions: { uid } };
    try {
      await this.#core(signal).deleteNamespacedPod({ namespace, name, body });
    } catch (error) {
      // Conflict: the name belongs to a later Pod, so this one is gone as well.
      if (!isNotFound(error) && toFailure(error).code !== "Conflict") throw error;
    }
  }

  #core(signal: AbortSignal): CoreV1Api {
    return this.#connection.api(CoreV1Api, { signal });
  }
}
