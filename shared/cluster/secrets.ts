import { CoreV1Api } from "@kubernetes/client-node";
import { isNotFound } from "#shared/errors/failure.ts";
import type { ClusterConnection } from "./connection.ts";
import type { ClusterCall } from "./deadline.ts";

export interface SecretContent {
  data: Record<string, Uint8Array>;
  resourceVersion: string;
}

/** Reads Secrets one by one; needs `get` alone. */
export class SecretReader {
  readonly #connection: ClusterConnection;

  constructor(deps: { connection: ClusterConnection }) {
    this.#connection = deps.connection;
  }

  /** Undefined only when the server proves that there is none; otherwise rejects with a Failure. */
  async read(namespace: string, name: string, call: ClusterCall): Promise<SecretContent | undefined> {
    try {
      const secret = await this.#connection.api(CoreV1Api, call).readNamespacedSecret({ namespace, name });
      const data = Object.entries(secret.data ?? {}).map(
        ([key, value]) => [key, Buffer.from(value, "base64")] as const,
      );
      return { data: Object.fromEntries(data), resourceVersion: secret.metadata?.resourceVersion ?? "" };
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}
