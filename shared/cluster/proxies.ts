import { CustomObjectsApi, PatchStrategy, setHeaderOptions } from "@kubernetes/client-node";
import { z } from "zod";
import { Failure, isNotFound } from "#shared/errors/failure.ts";
import { group, version } from "#shared/model/names.ts";
import { type Proxy, proxy } from "#shared/model/proxy.ts";
import type { ProxyStatus } from "#shared/model/proxy-status.ts";
import type { ClusterConnection } from "./connection.ts";
import type { ClusterCall } from "./deadline.ts";
import { addFinalizerPatch, removeFinalizerPatch } from "./finalizer-patch.ts";
import { mergePatch } from "./merge-patch.ts";
import { listPages, listPaths, type ResourceKind } from "./pages.ts";

export const proxyKind: ResourceKind = { group, version, plural: "proxies" };

export interface ProxyList {
  proxies: Proxy[];
  /** Proxies that exist but do not parse. They still own their instances. */
  unreadable: { namespace: string; name: string; uid: string; failure: Failure }[];
}

const attempts = 3;

/** Reads and writes Proxies, never from a cache. Every method rejects with a Failure. */
export class ProxyClient {
  readonly #connection: ClusterConnection;

  constructor(deps: { connection: ClusterConnection }) {
    this.#connection = deps.connection;
  }

  /** Undefined only when the server proves that there is none. One that does not parse: Permanent `UnreadableProxy`. */
  async get(key: { namespace: string; name: string }, call: ClusterCall): Promise<Proxy | undefined> {
    try {
      const { namespace, name } = key;
      return parse(await this.#api(call).getNamespacedCustomObject({ ...proxyKind, namespace, name }));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** All Proxies of the namespaces; the deadline counts for each page. Starts again when the list expires on the way. */
  async list(scope: { namespaces: readonly string[] | "*" }, call: ClusterCall): Promise<ProxyList> {
    const all: ProxyList = { proxies: [], unreadable: [] };
    for (const path of listPaths(proxyKind, scope.namespaces)) {
      for (const item of await this.#items(path, call)) {
        const parsed = proxy.safeParse(item);
        if (parsed.success) all.proxies.push(parsed.data);
        else all.unreadable.push(unreadableOf(item, parsed.error));
      }
    }
    return all;
  }

  /** No call where it is there already. Conflict when the Proxy changed since it was read. */
  async addFinalizer(read: Proxy, call: ClusterCall): Promise<Proxy> {
    const body = addFinalizerPatch(read);
    if (body === undefined) return read;
    return parse(await this.#api(call).patchNamespacedCustomObject({ ...proxyKind, ...nameOf(read), body }));
  }

  /** Done as well when the finalizer or the very object (by uid) is gone already. */
  async removeFinalizer(read: Proxy, call: ClusterCall): Promise<void> {
    let current: Proxy | undefined = read;
    for (let attempt = 1; current?.metadata.uid === read.metadata.uid; attempt += 1) {
      const body = removeFinalizerPatch(current);
      if (body === undefined) return;
      try {
        await this.#api(call).patchNamespacedCustomObject({ ...proxyKind, ...nameOf(read), body });
        return;
      } catch (error) {
        if (isNotFound(error)) return;
        if (!isConflict(error) || attempt >= attempts) throw error;
      }
      // Somebody else took a finalizer away, or this one, or there is a new object of that name.
      current = await this.get(nameOf(read), call);
    }
  }

  /**
   * Makes the status what is given: fields that are missing in it are removed. Nothing is sent when nothing differs.
   * Transient `Conflict` when the Proxy changed since it was read; answers with the Proxy as it is now.
   */
  async patchStatus(read: Proxy, status: ProxyStatus, call: ClusterCall): Promise<Proxy> {
    const patch = mergePatch(read.status, status);
    if (Object.keys(patch).length === 0) return read;
    const body = { metadata: { resourceVersion: read.metadata.resourceVersion }, status: patch };
    const request = { ...proxyKind, ...nameOf(read), body };
    const asMergePatch = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);
    return parse(await this.#api(call).patchNamespacedCustomObjectStatus(request, asMergePatch));
  }

  #api(call: ClusterCall): CustomObjectsApi {
    return this.#connection.api(CustomObjectsApi, call);
  }

  async #items(path: string, call: ClusterCall): Promise<unknown[]> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const items: unknown[] = [];
        for await (const page of listPages(this.#connection, { path }, call)) items.push(...page.items);
        return items;
      } catch (error) {
        if (!(error instanceof Failure) || error.code !== "Gone" || attempt >= attempts) throw error;
      }
    }
  }
}

const identity = z.object({ metadata: z.object({ namespace: z.string(), name: z.string(), uid: z.string() }) });

function parse(object: unknown): Proxy {
  const parsed = proxy.safeParse(object);
  if (!parsed.success) throw unreadable(object, parsed.error);
  return parsed.data;
}

/** What has not even a name is no Proxy but some other answer, which proves nothing. */
function unreadableOf(object: unknown, error: z.ZodError): ProxyList["unreadable"][number] {
  const named = identity.safeParse(object).data?.metadata;
  const failure = unreadable(object, error);
  if (named === undefined) throw failure;
  return { ...named, failure };
}

/** Names the fields, never their values. */
function unreadable(object: unknown, error: z.ZodError): Failure {
  const named = identity.safeParse(object).data?.metadata;
  if (named === undefined) {
    const message = "the API server answered something that is no Proxy";
    return new Failure({ class: "Transient", code: "UnexpectedAnswer", message });
  }
  const fields = error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; ");
  return new Failure({
    class: "Permanent",
    code: "UnreadableProxy",
    message: `Proxy ${named.namespace}/${named.name} does not parse: ${fields}`,
  });
}

function nameOf({ metadata }: Proxy): { namespace: string; name: string } {
  return { namespace: metadata.namespace, name: metadata.name };
}

function isConflict(error: unknown): boolean {
  return error instanceof Failure && error.code === "Conflict";
}
