import type { Call, Provider } from "../contract.ts";

/** The calls of a provider that reach its backend; `place` is pure and `close` is no call. */
export type Operation = "create" | "get" | "delete" | "list";

/** What is known of a call before its answer. */
export interface CallInfo {
  op: Operation;
  providerID: string | undefined;
}

/** Runs `invoke`, before, after or instead of whatever else it does. */
export type Around = <T>(info: CallInfo, call: Call, invoke: (call: Call) => Promise<T>) => Promise<T>;

/** A provider whose calls all go through `around`. */
export function wrapCalls(inner: Provider, around: Around): Provider {
  return {
    name: inner.name,
    type: inner.type,
    ...(inner.pendingPollMs === undefined ? {} : { pendingPollMs: inner.pendingPollMs }),
    place: (request) => inner.place(request),
    create: (request, call) =>
      around({ op: "create", providerID: undefined }, call, (its) => inner.create(request, its)),
    get: (providerID, call) => around({ op: "get", providerID }, call, (its) => inner.get(providerID, its)),
    delete: (identity, call) =>
      around({ op: "delete", providerID: identity.providerID }, call, (its) => inner.delete(identity, its)),
    list: (call) => around({ op: "list", providerID: undefined }, call, (its) => inner.list(its)),
    close: () => inner.close(),
  };
}
