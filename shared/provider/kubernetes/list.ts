import type { V1ObjectMeta, V1Pod } from "@kubernetes/client-node";
import type { Call, Instance, Listing, SecondaryResource } from "../contract.ts";
import type { PodCluster } from "./objects.ts";
import { ownSelector, readOwner } from "./owner-labels.ts";
import { podState } from "./pod-state.ts";
import { formatProviderID } from "./provider-id.ts";

/** Where and for whom this provider works. */
export interface ListScope {
  installation: string;
  /** The watched namespaces. */
  namespaces: readonly string[] | "*";
  /** Told of each namespace that could not be read. */
  onUnreadable: (namespace: string, error: unknown) => void;
}

/**
 * Pods and Secrets with our marks. A namespace that cannot be read makes the listing incomplete; rejects when none can.
 */
export async function listOwned(cluster: PodCluster, scope: ListScope, call: Call): Promise<Listing> {
  const namespaces = scope.namespaces === "*" ? [undefined] : scope.namespaces;
  const selector = ownSelector(scope.installation);
  const results = await Promise.allSettled(
    namespaces.map(async (namespace) => ({
      pods: await cluster.pods.list(namespace, selector, call),
      secrets: await cluster.secrets.list(namespace, selector, call),
    })),
  );
  const read = results.filter((result) => result.status === "fulfilled").map((result) => result.value);
  const failed = results.flatMap((result, index) =>
    result.status === "rejected" ? [{ namespace: namespaces[index] ?? "*", error: toError(result.reason) }] : [],
  );
  const [first] = failed;
  if (first !== undefined && read.length === 0) throw first.error;
  for (const { namespace, error } of failed) scope.onUnreadable(namespace, error);
  return {
    instances: read.flatMap(({ pods }) => pods.map(instanceOf)),
    resources: read.flatMap(({ secrets }) => secrets.map(({ metadata }) => secretOf(metadata))),
    complete: failed.length === 0,
  };
}

/** What a Pod says of the instance that it is. */
export function instanceOf(pod: V1Pod): Instance {
  const { name = "", namespace = "", creationTimestamp } = pod.metadata ?? {};
  return {
    ...readOwner(pod.metadata),
    ...podState(pod),
    name,
    providerID: formatProviderID({ namespace, name }),
    createdAt: creationTimestamp ?? new Date(0),
    zone: "",
  };
}

function secretOf(metadata: V1ObjectMeta | undefined): SecondaryResource {
  const { name = "", namespace = "" } = metadata ?? {};
  const providerID = formatProviderID({ namespace, name });
  return { ...readOwner(metadata), kind: "Secret", instanceName: name, providerID, namespace };
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
