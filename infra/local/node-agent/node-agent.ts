import { ClusterConnection } from "#shared/cluster/connection.ts";
import type { Logger } from "#shared/telemetry/logger.ts";
import { NodeAgent } from "./agent.ts";
import { KubernetesAgentCluster } from "./kubernetes-cluster.ts";

export interface RunningNodeAgent {
  /** Ends all Squids, and everything that they left on this machine. The Pods stay in the API. */
  stop(): Promise<void>;
}

/**
 * Starts a node agent on the API server of a kubeconfig. `dir` is the data folder of this installation (one agent at a
 * time each). Throws a Failure when the kubeconfig is unusable; an API server that is away is waited for.
 */
export async function startNodeAgent(options: {
  kubeconfigFile: string;
  dir: string;
  /** Whose Pods it takes; of all namespaces by default. */
  namespace?: string;
  log: Logger;
}): Promise<RunningNodeAgent> {
  const { kubeconfigFile, dir, log, namespace = "*" } = options;
  const connection = ClusterConnection.load({ kubeconfigFile, userAgent: "egress-proxies-node-agent" });
  try {
    const cluster = new KubernetesAgentCluster({ connection, log, namespace });
    const agent = await NodeAgent.start({ cluster, dir, log });
    const stop = async (): Promise<void> => {
      await agent.stop();
      await connection.close();
    };
    return { stop };
  } catch (error) {
    await connection.close();
    throw error;
  }
}
