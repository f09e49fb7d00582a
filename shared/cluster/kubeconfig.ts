import { readFileSync } from "node:fs";
import path from "node:path";
import { type Cluster, KubeConfig, type RequestContext, type User } from "@kubernetes/client-node";
import type { Dispatcher } from "undici";
import { parse } from "yaml";
import { z } from "zod";
import { Failure, toFailure } from "#shared/errors/failure.ts";
import { Agents } from "./agents.ts";

/** Which API server, and who we are there. Credentials are read when used, and again after `reload`. */
export class Kubeconfig {
  readonly #file: string | undefined;
  readonly #podRoot: string;
  readonly #agents = new Agents();
  #config: KubeConfig;

  /** Without a file: the Pod's own service account, below `podRoot`. Throws Permanent, naming the remedy. */
  constructor(file: string | undefined, podRoot = "") {
    this.#file = file;
    this.#podRoot = podRoot;
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
      throw unavailable(error);
    }
    const authorization = request.getHeaders()["Authorization"];
    // The library sends a token file's last line break along, which no header may hold.
    if (authorization !== undefined) request.setHeaderParam("Authorization", authorization.trim());
    const dispatcher = request.getDispatcher();
    if (dispatcher === undefined) throw new Error("the Kubernetes client library no longer uses createDispatcher");
    return dispatcher;
  }

  /**
   * Reads everything anew. The library keeps a token for a minute, also one that was just refused. Throws Transient while a
   * file that is being replaced cannot be read; what was read before then stays.
   */
  reload(): void {
    try {
      this.#config = this.#read();
    } catch (error) {
      throw unavailable(error);
    }
  }

  async close(): Promise<void> {
    await this.#agents.destroy();
  }

  #read(): KubeConfig {
    const config = this.#file === undefined ? inCluster(this.#podRoot) : fromFile(this.#file);
    const agents = this.#agents;
    // Private in the types, but called for every request: the one place where connections can be shared.
    Object.defineProperty(config, "createDispatcher", {
      value: (cluster: Cluster | null, options: Parameters<KubeConfig["createDispatcherOptions"]>[1]) =>
        agents.get(config.createDispatcherOptions(cluster, options)),
    });
    return config;
  }
}

function inCluster(podRoot: string): KubeConfig {
  if (!process.env.KUBERNETES_SERVICE_HOST) {
    throw invalid("not running in a cluster: set KUBECONFIG to the file that names one");
  }
  const config = new KubeConfig();
  config.loadFromCluster(podRoot);
  return config;
}

function fromFile(file: string): KubeConfig {
  const config = new KubeConfig();
  try {
    const text = readFileSync(file, "utf8");
    config.loadFromString(text);
    config.makePathsAbsolute(path.dirname(file));
    config.users = withTokenFiles(config.users, text, path.dirname(file));
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

const tokenFiles = z.object({
  users: z.array(z.object({ name: z.string(), user: z.object({ tokenFile: z.string().optional() }).nullish() })),
});

/** The library does not know `tokenFile` of a user, only its own form of it; it goes before `token`, as in kubectl. */
function withTokenFiles(users: User[], kubeconfig: string, dir: string): User[] {
  const named = tokenFiles.safeParse(parse(kubeconfig)).data?.users ?? [];
  return users.map(({ token, ...user }) => {
    const file = named.find(({ name }) => name === user.name)?.user?.tokenFile;
    if (file === undefined) return token === undefined ? user : { ...user, token };
    return { ...user, authProvider: { name: "tokenFile", config: { tokenFile: path.resolve(dir, file) } } };
  });
}

function currentCluster(config: KubeConfig): Cluster {
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw invalid("the kubeconfig's current-context names no cluster");
  return cluster;
}

function invalid(message: string): Failure {
  return new Failure({ class: "Permanent", code: "InvalidKubeconfig", message });
}

function unavailable(cause: unknown): Failure {
  const message = `cannot read our credentials for the API server: ${toFailure(cause).message}`;
  return new Failure({ class: "Transient", code: "CredentialsUnavailable", message, cause });
}
