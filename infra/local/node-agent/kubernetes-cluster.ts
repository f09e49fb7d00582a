import { CoreV1Api, PatchStrategy, setHeaderOptions } from "@kubernetes/client-node";
import type { ClusterConnection } from "#shared/cluster/connection.ts";
import { watchResource } from "#shared/cluster/watch.ts";
import { isNotFound, toFailure } from "#shared/errors/failure.ts";
import { marks } from "#shared/model/names.ts";
import type { Logger } from "#shared/telemetry/logger.ts";
import type { AgentCluster, PodHandlers } from "./agent-cluster.ts";
import { type AgentPod, agentPod } from "./agent-pod.ts";
import type { SecretFiles } from "./pod-files.ts";

/** The real API, as an ordinary client of it. */
export class KubernetesAgentCluster implements AgentCluster {
  readonly #connection: ClusterConnection;
  readonly #log: Logger;
  readonly #path: string;

  /** `namespace`: whose Pods it follows; `*` for all. */
  constructor(deps: { connection: ClusterConnection; log: Logger; namespace: string }) {
    this.#connection = deps.connection;
    this.#log = deps.log;
    this.#path = deps.namespace === "*" ? "/api/v1/pods" : `/api/v1/namespaces/${deps.namespace}/pods`;
  }

  async follow(handlers: PodHandlers, signal: AbortSignal): Promise<void> {
    const uids = new Map<string, string>();
    const changed = (key: string, object: unknown): void => {
      const { data: pod, error } = agentPod.safeParse(object);
      if (pod === undefined) return this.#log.warn({ err: error, pod: key }, "a pod does not parse");
      uids.set(key, pod.metadata.uid);
      handlers.changed(pod);
    };
    const gone = (key: string): void => {
      const uid = uids.get(key);
      uids.delete(key);
      if (uid !== undefined) handlers.gone(uid);
    };
    await watchResource({
      connection: this.#connection,
      path: this.#path,
      labelSelector: `${marks.managed}=true`,
      onChange: (change) => (change.kind === "gone" ? gone(change.key) : changed(change.key, change.object)),
      onListed: () => undefined,
      onFailure: (failure) => this.#log.warn({ err: failure }, "following pods failed, will be repeated"),
      signal,
      // The server is near: back within a second, and not hurt by being asked.
      timing: { lastBackoffMs: 2_000 },
    });
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
