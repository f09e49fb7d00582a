import { Failure } from "#shared/errors/failure.ts";
import type {
  Call,
  Created,
  CreateRequest,
  Identity,
  Instance,
  Listing,
  PlacementRequest,
  Provider,
} from "../contract.ts";
import { type CallTarget, classify } from "./classify.ts";
import { ensure, remove } from "./ensure.ts";
import { instanceOf, type ListScope, listOwned } from "./list.ts";
import { podManifest, secretManifest } from "./manifests.ts";
import type { PodCluster } from "./objects.ts";
import { formatProviderID, parseProviderID } from "./provider-id.ts";
import type { KubernetesSettings } from "./settings.ts";

export interface KubernetesProviderDeps {
  /** Configured name. */
  name: string;
  settings: KubernetesSettings;
  cluster: PodCluster;
  scope: ListScope;
}

/**
 * One Squid Pod per proxy, in the namespace of its Proxy, with a Secret of the same name. Placement and cloudInit are
 * ignored: the scheduler places Pods, and there is no machine to set up.
 */
export class KubernetesProvider implements Provider {
  readonly name: string;
  readonly type = "kubernetes";
  /** A Pod is there or gone within seconds. */
  readonly pendingPollMs = 2_000;
  readonly #settings: KubernetesSettings;
  readonly #cluster: PodCluster;
  readonly #scope: ListScope;

  constructor(deps: KubernetesProviderDeps) {
    this.name = deps.name;
    this.#settings = deps.settings;
    this.#cluster = deps.cluster;
    this.#scope = deps.scope;
  }

  /**
   * There are no zones: always the empty one. Permanent `AuthRequired` without credentials, unless the provider says
   * `insecureNoAuth`; Permanent `PortNotAllowed` for a port that a user without capabilities cannot listen on.
   */
  place({ port, hasAuth }: PlacementRequest): string {
    if (!hasAuth && !this.#settings.insecureNoAuth) throw authRequired(this.name);
    if (port < firstUnprivilegedPort) throw portNotAllowed(this.name, port);
    return "";
  }

  /** The Secret first: a Pod without it would wait for it. Both bear all marks from the first moment. */
  async create(request: CreateRequest, call: Call): Promise<Created> {
    const providerID = formatProviderID(request);
    return this.#classified({ op: "create", provider: this.name, providerID }, async () => {
      // Again: the settings may have changed since it was placed.
      this.place({ ...request, hasAuth: request.auth !== undefined });
      await ensure(this.#cluster.secrets, secretManifest(request, this.#settings), request, request, call);
      await ensure(this.#cluster.pods, podManifest(request, this.#settings), request, request, call);
      return { providerID };
    });
  }

  /** A Pod that is being deleted counts as Stopped until it is gone. */
  async get(providerID: string, call: Call): Promise<Instance> {
    const target = { op: "get", provider: this.name, providerID } as const;
    return this.#classified(target, async () => {
      const { namespace, name } = parseProviderID(target);
      return instanceOf(await this.#cluster.pods.read(namespace, name, call));
    });
  }

  /** The Pod, then its Secret; "going" as long as one of them was seen. */
  async delete(identity: Identity, call: Call): Promise<"done" | "going"> {
    const providerID = identity.providerID ?? formatProviderID(identity);
    const target = { op: "delete", provider: this.name, providerID } as const;
    return this.#classified(target, async () => {
      const place = parseProviderID(target);
      const pod = await remove(this.#cluster.pods, place, identity, call);
      const secret = await remove(this.#cluster.secrets, place, identity, call);
      return pod === "gone" && secret === "gone" ? "done" : "going";
    });
  }

  /** Pods and Secrets of this installation in all watched namespaces. */
  async list(call: Call): Promise<Listing> {
    return this.#classified({ op: "list", provider: this.name }, () => listOwned(this.#cluster, this.#scope, call));
  }

  /** Nothing to end: the connection to the cluster belongs to the process. */
  async close(): Promise<void> {}

  async #classified<T>(target: CallTarget, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw classify(error, target);
    }
  }
}

const firstUnprivilegedPort = 1024;

function portNotAllowed(provider: string, port: number): Failure {
  return new Failure({
    class: "Permanent",
    code: "PortNotAllowed",
    message: `spec.port: ${port} is not possible with provider ${provider}, whose Squid runs without privileges: use a port of 1024 or above`,
  });
}

function authRequired(provider: string): Failure {
  return new Failure({
    class: "Permanent",
    code: "AuthRequired",
    message: `provider ${provider} makes no proxy without credentials: set spec.auth.secretRef on the Proxy, or kubernetes.insecureNoAuth: true in the providers file`,
  });
}
