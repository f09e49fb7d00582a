import type { ClusterConnection } from "#shared/cluster/connection.ts";
import type { ProviderEntry } from "./config.ts";
import type { Provider } from "./contract.ts";
import { withDeadline } from "./decorators/deadline.ts";
import { type ProviderCall, withMetrics } from "./decorators/metrics.ts";
import { coreApiOf, podCluster } from "./kubernetes/objects.ts";
import { KubernetesProvider } from "./kubernetes/provider.ts";

export interface ProviderDeps {
  installation: string;
  /** The watched namespaces. */
  namespaces: readonly string[] | "*";
  /** Our own API server, for providers that live in it. */
  connection: Pick<ClusterConnection, "api">;
  observe: (call: ProviderCall) => void;
  /** Told of a setting that opens something, each time a provider is made with it. */
  onInsecure: (provider: string, setting: string) => void;
  /** Told what a listing of a provider had to leave out, and why. */
  onUnreadable: (provider: string, part: string, error: unknown) => void;
}

/** Makes a provider of a configured type; the only place that knows the types. Dials nothing. */
export function createProvider(entry: ProviderEntry, deps: ProviderDeps): Provider {
  return withMetrics(withDeadline(bare(entry, deps)), deps.observe);
}

function bare(entry: ProviderEntry, deps: ProviderDeps): Provider {
  switch (entry.type) {
    case "kubernetes":
      if (entry.kubernetes.insecureNoAuth) deps.onInsecure(entry.name, "insecureNoAuth");
      return new KubernetesProvider({
        name: entry.name,
        settings: entry.kubernetes,
        cluster: podCluster(coreApiOf(deps.connection)),
        scope: {
          installation: deps.installation,
          namespaces: deps.namespaces,
          onUnreadable: (namespace, error) => deps.onUnreadable(entry.name, namespace, error),
        },
      });
  }
}
