import type { ReconcileDeps } from "#functions/reconcile/reconcile.ts";
import type { ProxyClient } from "#shared/cluster/proxies.ts";
import type { Fleet } from "#shared/fleet/fleet.ts";
import { type Member, parseMember } from "#shared/model/keys.ts";
import type { Provider } from "#shared/provider/contract.ts";

/** A call of reconcile that leaves the process; `read proxy` is the first one of every run. */
export type OutsideCall =
  | "read proxy"
  | "add finalizer"
  | "write status"
  | "remove finalizer"
  | "create"
  | "delete"
  | "register"
  | "unregister";

/** Runs before, after or instead of a call; `uid` is the Proxy's. */
export type Around = <T>(uid: string, what: OutsideCall, call: () => Promise<T>) => Promise<T>;

/** The Proxies whose calls all go through `around`. */
export function aroundProxies(inner: ProxyClient, around: Around): ReconcileDeps["proxies"] {
  return {
    async get(key, call) {
      const proxy = await inner.get(key, call);
      return await around(proxy?.metadata.uid ?? "", "read proxy", () => Promise.resolve(proxy));
    },
    addFinalizer: (read, call) => around(read.metadata.uid, "add finalizer", () => inner.addFinalizer(read, call)),
    removeFinalizer: (read, call) =>
      around(read.metadata.uid, "remove finalizer", () => inner.removeFinalizer(read, call)),
    patchStatus: (read, status, call) =>
      around(read.metadata.uid, "write status", () => inner.patchStatus(read, status, call)),
  };
}

/** The registry whose writes all go through `around`. */
export function aroundFleet(inner: Fleet, around: Around): ReconcileDeps["fleet"] {
  return {
    look: (id) => inner.look(id),
    upsert: (entry, fence) => around(entry.uid, "register", () => inner.upsert(entry, fence)),
    amend: (entry, fence) => around(entry.uid, "register", () => inner.amend(entry, fence)),
    keepOnly: (key, stays, gone, fence) =>
      around(uidOf(stays ?? gone[0]), "unregister", () => inner.keepOnly(key, stays, gone, fence)),
    removeByName: (key, fence) => inner.removeByName(key, fence),
  };
}

function uidOf(id: Member | undefined): string {
  return id === undefined ? "" : parseMember(id).uid;
}

/** A provider whose changing calls all go through `around`. */
export function aroundProvider(inner: Provider, around: Around): Provider {
  return {
    name: inner.name,
    type: inner.type,
    place: (request) => inner.place(request),
    create: (request, call) => around(request.uid, "create", () => inner.create(request, call)),
    get: (providerID, call) => inner.get(providerID, call),
    delete: (identity, call) => around(identity.uid, "delete", () => inner.delete(identity, call)),
    list: (call) => inner.list(call),
    close: () => inner.close(),
  };
}
