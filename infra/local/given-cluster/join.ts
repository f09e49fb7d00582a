import { CoreV1Api } from "@kubernetes/client-node";
import { ClusterConnection } from "#shared/cluster/connection.ts";
import { LeaderLease } from "#shared/cluster/leader-lease.ts";
import { Failure, isNotFound, toFailure } from "#shared/errors/failure.ts";
import type { Place } from "../place.ts";
import { applyDefinition } from "./definition.ts";
import { machineAddressFor } from "./nodes.ts";
import { refuseOtherLeader } from "./other-leader.ts";
import { describeRight, missingRights, type Namespaces, type Right, wantedRights } from "./rights.ts";

export interface JoinOptions {
  kubeconfigFile: string;
  /** Of the product; the samples go to another beside it. */
  namespace: string;
  withAgent: boolean;
  /** Of this folder; it outlives a start. */
  identity: string;
  say: (line: string) => void;
  signal: AbortSignal;
}

function samplesNamespaceOf(namespace: string): string {
  return `${namespace}-samples`;
}

/**
 * Prepares somebody's cluster: looks first whether everything is as it must be, then applies the definition of Proxy and
 * creates what is not there of two namespaces. Changes nothing else, and deletes nothing. Rejects with a Failure that says
 * what to do.
 */
export async function joinCluster(options: JoinOptions): Promise<Place> {
  const { kubeconfigFile, namespace: product, withAgent, identity, say, signal } = options;
  const connection = ClusterConnection.load({ kubeconfigFile, userAgent: "egress-proxies-npm-start" });
  const namespaces = { product, samples: samplesNamespaceOf(product) };
  try {
    await checkAnswer(connection, signal);
    const absent = await absentNamespaces(connection, namespaces, signal);
    await checkRights(connection, namespaces, { absent, withAgent, signal });
    const machineAddress = await machineAddressFor(connection, withAgent, signal);
    const lease = new LeaderLease({ connection, namespace: product, name: "egress-proxies-watcher" });
    await refuseOtherLeader({ lease, namespace: product, identity, say, signal });
    await applyDefinition(connection, { say, signal });
    await createAbsent(connection, { ...namespaces, absent, withAgent, say, signal });
    if (withAgent) await warnOfPodCollection(connection, { say, signal });
    return {
      kubeconfigFile,
      podName: identity,
      productNamespace: product,
      samplesNamespace: namespaces.samples,
      watchNamespaces: namespaces.samples,
      agentNamespace: withAgent ? namespaces.samples : undefined,
      machineAddress,
    };
  } finally {
    await connection.close();
  }
}

async function checkAnswer(connection: ClusterConnection, signal: AbortSignal): Promise<void> {
  try {
    await connection.json({ path: "/version", query: {} }, { signal });
  } catch (cause) {
    signal.throwIfAborted();
    const message = `${connection.server} does not answer as the API server of this kubeconfig: ${toFailure(cause).message}`;
    throw new Failure({ class: "Permanent", code: "NoAnswer", message, cause });
  }
}

async function absentNamespaces(
  connection: ClusterConnection,
  { product, samples }: Namespaces,
  signal: AbortSignal,
): Promise<string[]> {
  const absent: string[] = [];
  for (const name of [product, samples]) {
    try {
      await connection.api(CoreV1Api, { signal }).readNamespace({ name });
    } catch (error) {
      // Who may not look is not asked to create it: it has to be there.
      if (error instanceof Failure && error.code === "Forbidden") continue;
      if (!isNotFound(error) && !(error instanceof Failure && error.code === "NamespaceNotFound")) throw error;
      absent.push(name);
    }
  }
  return absent;
}

async function checkRights(
  connection: ClusterConnection,
  namespaces: Namespaces,
  { absent, withAgent, signal }: { absent: string[]; withAgent: boolean; signal: AbortSignal },
): Promise<void> {
  const wanted = await wantedRights(namespaces, withAgent);
  const creation: Right[] = absent.length === 0 ? [] : [{ verb: "create", group: "", resource: "namespaces" }];
  const missing = await missingRights(connection, [...creation, ...wanted], signal);
  if (missing.length === 0) return;
  const lines = [...new Set(missing.map((right) => `\n  ${describeRight(right)}`))];
  const message = `You lack rights in this cluster, and nothing was changed. Missing:${lines.join("")}\nA ClusterRole with the product's own rights is in infra/cluster/rbac.yaml.`;
  throw new Failure({ class: "Permanent", code: "MissingRights", message });
}

/** The agent's node is a name alone: nobody has registered it. */
async function warnOfPodCollection(
  connection: ClusterConnection,
  { say, signal }: Pick<JoinOptions, "say" | "signal">,
): Promise<void> {
  const lease = new LeaderLease({ connection, namespace: "kube-system", name: "kube-controller-manager" });
  try {
    const holder = (await lease.read({ signal }))?.holder;
    if (holder)
      say(
        `A controller manager runs in this cluster (${holder}): it deletes Pods of Nodes that it does not know, ours too, again and again. --with-agent is for an API server without one.`,
      );
  } catch (error) {
    // Who may not look is not warned.
    if (!(error instanceof Failure) || error.code !== "Forbidden") throw error;
  }
}

interface Creation extends Namespaces, Pick<JoinOptions, "withAgent" | "say" | "signal"> {
  absent: readonly string[];
}

async function createAbsent(connection: ClusterConnection, creation: Creation): Promise<void> {
  const { absent, samples, withAgent, say, signal } = creation;
  const core = connection.api(CoreV1Api, { signal });
  for (const name of absent) {
    await core.createNamespace({ body: { metadata: { name } } });
    say(`namespace/${name}: created`);
  }
  if (!withAgent) return;
  // No Pod is accepted without it. A cluster's controllers add it, but one without Nodes may have none.
  try {
    await core.createNamespacedServiceAccount({ namespace: samples, body: { metadata: { name: "default" } } });
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "AlreadyExists") throw error;
  }
}
