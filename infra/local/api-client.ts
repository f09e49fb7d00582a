import { KubernetesObjectApi } from "@kubernetes/client-node";
import { z } from "zod";
import { ClusterConnection } from "#shared/cluster/connection.ts";
import { ProxyClient } from "#shared/cluster/proxies.ts";
import { Failure } from "#shared/errors/failure.ts";
import type { Proxy } from "#shared/model/proxy.ts";

export const manifest = z.looseObject({
  apiVersion: z.string(),
  kind: z.enum(["Proxy", "Secret", "Namespace", "ServiceAccount"]),
  metadata: z.strictObject({ name: z.string(), labels: z.record(z.string(), z.string()).exactOptional() }),
});
export type Manifest = z.infer<typeof manifest>;

/** The few calls to the Kubernetes API that the first look makes; everything else is kubectl's. Rejects with Failures. */
export class ApiClient {
  readonly #connection: ClusterConnection;
  readonly #call = { signal: new AbortController().signal };

  constructor({ kubeconfigFile }: { kubeconfigFile: string }) {
    this.#connection = ClusterConnection.load({ kubeconfigFile, userAgent: "egress-proxies-npm-start" });
  }

  /** Creates an object. False: there is one of that name, also while it is being deleted; it stays as it is. */
  async create(object: Manifest, namespace: string): Promise<boolean> {
    const place = object.kind === "Namespace" ? {} : { namespace };
    try {
      const api = this.#connection.api(KubernetesObjectApi, this.#call);
      await api.create({ ...object, metadata: { ...object.metadata, ...place } });
      return true;
    } catch (error) {
      if (error instanceof Failure && error.code === "AlreadyExists") return false;
      throw error;
    }
  }

  /** All Proxies of the namespaces that can be read. */
  async proxies(namespaces: readonly string[] | "*"): Promise<Proxy[]> {
    return (await new ProxyClient({ connection: this.#connection }).list({ namespaces }, this.#call)).proxies;
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }
}
