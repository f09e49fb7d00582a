/** The Kubernetes API that `npm start` runs on, and where in it. */
export interface Place {
  /** Absolute. */
  kubeconfigFile: string;
  /** Under which the product stands for leader. One at a time may have it. */
  podName: string;
  /** Where the product keeps who it is, and who leads. */
  productNamespace: string;
  samplesNamespace: string;
  /** As the setting WATCH_NAMESPACES. */
  watchNamespaces: string;
  /** Pods of that namespace, or of all (`*`), are run here as Squid processes. Undefined: the cluster's kubelets do. */
  agentNamespace: string | undefined;
  /** This machine's address as the Pods reach it. Undefined: they run on this machine, loopback does. */
  machineAddress: string | undefined;
  /** What `npm start` itself has put into somebody's cluster, now or earlier. Undefined: the cluster is its own. */
  made: { namespaces: string[]; definition: boolean } | undefined;
}
