import { CoreV1Api, type V1Pod, V1Secret } from "@kubernetes/client-node";
import type { ClusterConnection } from "#shared/cluster/connection.ts";
import type { Call } from "../contract.ts";

/** One kind of object in the cluster. All methods reject with a `Failure`; a missing object is NotFound. */
export interface Objects<T> {
  create(namespace: string, body: T, call: Call): Promise<void>;
  read(namespace: string, name: string, call: Call): Promise<T>;
  /** Only the object with this uid: a later one of the same name stays. */
  delete(namespace: string, name: string, uid: string, call: Call): Promise<void>;
  /** All pages; namespace undefined: of all namespaces. */
  list(namespace: string | undefined, labelSelector: string, call: Call): Promise<T[]>;
}

/** The cluster as this provider sees it. */
export interface PodCluster {
  pods: Objects<V1Pod>;
  secrets: Objects<V1Secret>;
}

/** Makes the typed API for one call, with its signal; what it rejects with is a `Failure`. */
export type CoreApi = (call: Call) => CoreV1Api;

/** Our own API server's core API, with the deadline of each call. */
export function coreApiOf(connection: Pick<ClusterConnection, "api">): CoreApi {
  return (call) => connection.api(CoreV1Api, call);
}

/** Pods and Secrets of the real cluster. `pageSize`: objects per page of a list. */
export function podCluster(core: CoreApi, pageSize = 500): PodCluster {
  return { pods: pods(core, pageSize), secrets: secrets(core, pageSize) };
}

function pods(core: CoreApi, limit: number): Objects<V1Pod> {
  return {
    create: async (namespace, body, call) => void (await core(call).createNamespacedPod({ namespace, body })),
    read: (namespace, name, call) => core(call).readNamespacedPod({ namespace, name }),
    delete: async (namespace, name, uid, call) =>
      void (await core(call).deleteNamespacedPod({ namespace, name, body: { preconditions: { uid } } })),
    list: (namespace, labelSelector, call) =>
      allPages((_continue) => {
        const page = { labelSelector, limit, ...(_continue === undefined ? {} : { _continue }) };
        return namespace === undefined
          ? core(call).listPodForAllNamespaces(page)
          : core(call).listNamespacedPod({ namespace, ...page });
      }),
  };
}

function secrets(core: CoreApi, limit: number): Objects<V1Secret> {
  return {
    create: async (namespace, body, call) => void (await core(call).createNamespacedSecret({ namespace, body })),
    read: (namespace, name, call) => core(call).readNamespacedSecret({ namespace, name }),
    delete: async (namespace, name, uid, call) =>
      void (await core(call).deleteNamespacedSecret({ namespace, name, body: { preconditions: { uid } } })),
    list: (namespace, labelSelector, call) =>
      allPages((_continue) => {
        const page = { labelSelector, limit, ...(_continue === undefined ? {} : { _continue }) };
        return namespace === undefined
          ? core(call).listSecretForAllNamespaces(page)
          : core(call).listNamespacedSecret({ namespace, ...page });
      }),
  };
}

interface Page<T> {
  items: T[];
  metadata?: { _continue?: string };
}

async function allPages<T>(next: (token: string | undefined) => Promise<Page<T>>): Promise<T[]> {
  const items: T[] = [];
  let token: string | undefined;
  do {
    const page = await next(token);
    items.push(...page.items);
    token = page.metadata?._continue || undefined;
  } while (token !== undefined);
  return items;
}
