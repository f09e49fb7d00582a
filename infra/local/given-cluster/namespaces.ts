import { CoreV1Api } from "@kubernetes/client-node";
import type { ClusterConnection } from "#shared/cluster/connection.ts";
import { Failure, isNotFound } from "#shared/errors/failure.ts";

const label = "app.kubernetes.io/managed-by";
const maker = "egress-proxies-npm-start";

/** Somebody else's: it was there before us. */
export type NamespaceState = "absent" | "made by us" | "somebody else's";

/** Rejects with a Failure. Who may not look is not to create it either: then it is somebody else's. */
export async function stateOfNamespace(
  connection: Pick<ClusterConnection, "api">,
  name: string,
  signal: AbortSignal,
): Promise<NamespaceState> {
  try {
    const { metadata } = await connection.api(CoreV1Api, { signal }).readNamespace({ name });
    return metadata?.labels?.[label] === maker ? "made by us" : "somebody else's";
  } catch (error) {
    if (error instanceof Failure && error.code === "Forbidden") return "somebody else's";
    // The server says with the 404 of a namespace that it is one, which elsewhere means that a place is missing.
    if (isNotFound(error) || (error instanceof Failure && error.code === "NamespaceNotFound")) return "absent";
    throw error;
  }
}

/** Marked as ours, so that a later start knows what may be deleted with it. */
export async function createNamespace(
  connection: Pick<ClusterConnection, "api">,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  await connection
    .api(CoreV1Api, { signal })
    .createNamespace({ body: { metadata: { name, labels: { [label]: maker } } } });
}

/**
 * No Pod is accepted without the ServiceAccount `default`. A cluster's controllers add it, but one without Nodes may have
 * none of them.
 */
export async function ensureDefaultAccount(
  connection: Pick<ClusterConnection, "api">,
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    const body = { metadata: { name: "default" } };
    await connection.api(CoreV1Api, { signal }).createNamespacedServiceAccount({ namespace, body });
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "AlreadyExists") throw error;
  }
}
