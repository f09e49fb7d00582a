import { type Cluster, KubeConfig, type RequestContext } from "@kubernetes/client-node";
import type { Dispatcher } from "undici";
import { Failure, toFailure } from "#shared/errors/failure.ts";
import { Agents } from "./agents.ts";

/** Which API server, and who we are there. Credentials are read when used, and again after `reload`. */
export class Kubeconfig {
  readonly #file: string | undefined;
  readonly #agents = new Agents();
  #config: KubeConfig;

  /** Without a file: the Pod's own service account. Throws Permanent, naming the remedy. */
  constructor(file: string | undefined) {
    this.#file = file;
    this.#config = this.#read();
  }

  /** Without a slash at the end. */
  get server(): string {
    return currentCluster(this.#config).server.replace(/\/+$/, "");
  }

  /** Puts our credentials on the request; answers with the connections to send it over. */
  async authenticate(request: RequestContext): Promise<Dispatcher> {
    try {
      await this.#config.applySecurityAuthentication(request);
    } catch (error) {
      const { message } = toFailure(error);
      throw new Failure({
        class: "Transient",
        code: "CredentialsUnavailable",
        message: `cannot read our credentials for the API server: ${message}`,
        cause: error,
      });
    }
    const dispatcher = request.getDispatcher();
    if (dispatcher === undefined) throw new Error("the Kubernetes client library no longer uses createDispatcher");
    return dispatcher;
  }

  /** Reads everything anew. The library keeps a token for a minute, also one that was just refused. */
  reload(): void {
    this.#config = this.#read();
  }

  async close(): Promise<void> {
    await this.#agents.destroy();
  }

  #read(): KubeConfig {
    const config = this.#file === undefined ? inCluster() : fromFile(this.#file);
    const agents = this.#agents;
    // Private in the types, but called for every request: the one place where connections can be shared.
    Object.defineProperty(config, "createDispatcher", {
      value: (cluster: Cluster | null, options: Parameters<KubeConfig["createDispatcherOptions"]>[1]) =>
        agents.get(config.createDispatcherOptions(cluster, options)),
    });
    return config;
  }
}

function inCluster(): KubeConfig {
  if (!process.env.KUBERNETES_SERVICE_HOST) {
    throw invalid("not running in a cluster: set KUBECONFIG to the file that names one");
  }
  const config = new KubeConfig();
  config.loadFromCluster();
  return config;
}

function fromFile(file: string): KubeConfig {
  const config = new KubeConfig();
  try {
    config.loadFromFile(file);
  } catch (error) {
    throw invalid(`cannot read kubeconfig ${file}: ${toFailure(error).message}`);
  }
  // Over plain http there is no TLS to verify; the library insists on being told, kubectl does not.
  config.clusters = config.clusters.map((cluster) =>
    cluster.server.startsWith("http:") ? { ...cluster, skipTLSVerify: true } : cluster,
  );
  currentCluster(config);
  return config;
}

function currentCluster(config: KubeConfig): Cluster {
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw invalid("the kubeconfig's current-context names no cluster");
  return cluster;
}

function invalid(message: string): Failure {
  return new Failure({ class: "Permanent", code: "InvalidKubeconfig", message });
}
