import { ClusterConnection } from "#shared/cluster/connection.ts";
import { LeaderLease } from "#shared/cluster/leader-lease.ts";
import { Failure, toFailure } from "#shared/errors/failure.ts";
import type { Place } from "../place.ts";
import { applyDefinition } from "./definition.ts";
import { createNamespace, ensureDefaultAccount, type NamespaceState, stateOfNamespace } from "./namespaces.ts";
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

/**
 * Prepares somebody's cluster: looks first whether everything is as it must be, then applies the definition of Proxy and
 * creates what is not there of two namespaces. Changes nothing else, and deletes nothing. Rejects with a Failure that says
 * what to do.
 */
export async function joinCluster(options: JoinOptions): Promise<Place> {
  const { kubeconfigFile, namespace: product, withAgent, identity, say, signal } = options;
  const connection = ClusterConnection.load({ kubeconfigFile, userAgent: "egress-proxies-npm-start" });
  const namespaces = { product, samples: `${product}-samples` };
  try {
    await checkAnswer(connection, signal);
    const states = new Map<string, NamespaceState>();
    for (const name of Object.values(namespaces)) states.set(name, await stateOfNamespace(connection, name, signal));
    const absent = [...states.keys()].filter((name) => states.get(name) === "absent");
    await checkRights(connection, namespaces, { absent, withAgent, signal });
    const machineAddress = await machineAddressFor(connection, withAgent, signal);
    const lease = new LeaderLease({ connection, namespace: product, name: "egress-proxies-watcher" });
    await refuseOtherLeader({ lease, namespace: product, identity, say, signal });
    const definition = await applyDefinition(connection, { say, signal });
    for (const name of absent) {
      await createNamespace(connection, name, signal);
      say(`namespace/${name}: created`);
    }
    if (withAgent) {
      await ensureDefaultAccount(connection, namespaces.samples, signal);
      await warnOfPodCollection(connection, { say, signal });
    }
    return {
      kubeconfigFile,
      podName: identity,
      productNamespace: product,
      samplesNamespace: namespaces.samples,
      watchNamespaces: namespaces.samples,
      agentNamespace: withAgent ? namespaces.samples : undefined,
      machineAddress,
      made: { namespaces: [...states.keys()].filter((name) => states.get(name) !== "somebody else's"), definition },
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
