import type { ApiState } from "./api-state.ts";
import { deleteObject } from "./delete-object.ts";
import { isContainer, type Kind } from "./kind.ts";
import { definitionsKey, namespacesKey } from "./kinds.ts";
import type { Change } from "./store.ts";
import type { StoredObject } from "./stored-object.ts";

const eventLifeMs = 3_600_000;

/**
 * Starts what the real cluster's controllers do after a deletion: objects whose owners are all gone are deleted, and so
 * is the content of a Namespace or CustomResourceDefinition that is being deleted; an empty one goes. Events go after an
 * hour. Runs after each change that may call for it. Returns the function that ends it.
 */
export function startGarbageCollection(api: ApiState): () => void {
  let scheduled: NodeJS.Immediate | undefined;
  const schedule = (): void => {
    scheduled ??= setImmediate(() => {
      scheduled = undefined;
      collect(api);
    });
  };
  schedule(); // a deletion that an earlier life of this server did not finish
  const unsubscribe = api.store.subscribe((change) => {
    if (mayLeaveGarbage(change)) schedule();
  });
  return () => {
    unsubscribe();
    clearImmediate(scheduled);
  };
}

function mayLeaveGarbage({ type, object }: Change): boolean {
  const { deletionTimestamp, ownerReferences } = object.metadata;
  return type === "DELETED" || deletionTimestamp !== undefined || ownerReferences !== undefined;
}

function collect(api: ApiState): void {
  const everything = [...api.store.entries()];
  const alive = new Set(everything.map(([, object]) => object.metadata.uid));
  for (const [storeKey, object] of everything) {
    const kind = api.kinds.ofStoreKey(storeKey);
    if (kind === undefined) continue;
    if (isContainer(kind) && object.metadata.deletionTimestamp !== undefined) emptyContainer(api, kind, object);
    else if (isLeftOver(api, storeKey, object, alive)) deleteOnce(api, kind, object);
  }
}

function isLeftOver(api: ApiState, storeKey: string, object: StoredObject, alive: Set<string>): boolean {
  const owners = object.metadata.ownerReferences ?? [];
  if (owners.length > 0 && !owners.some((owner) => alive.has(owner.uid))) return true;
  if (storeKey !== "/events") return false;
  return api.now() - Date.parse(String(object["lastTimestamp"] ?? object.metadata.creationTimestamp)) > eventLifeMs;
}

function emptyContainer(api: ApiState, kind: Kind, container: StoredObject): void {
  const { name, finalizers = [] } = container.metadata;
  const definition = api.kinds.all().find((one) => one.custom && `${one.plural}.${one.group}` === name);
  const content = [...api.store.entries()].filter(([storeKey, object]) =>
    kind.storeKey === namespacesKey
      ? object.metadata.namespace === name
      : kind.storeKey === definitionsKey && storeKey === definition?.storeKey,
  );
  if (content.length === 0 && finalizers.length === 0) api.store.remove(kind.storeKey, container);
  for (const [storeKey, object] of content) {
    const contentKind = api.kinds.ofStoreKey(storeKey);
    if (contentKind !== undefined) deleteOnce(api, contentKind, object);
  }
}

function deleteOnce(api: ApiState, kind: Kind, object: StoredObject): void {
  const { namespace, name, uid } = object.metadata;
  // One deletion of this round may have caused another: look again.
  const current = api.store.get(kind.storeKey, namespace, name);
  if (current?.metadata.uid !== uid || current.metadata.deletionTimestamp !== undefined) return;
  deleteObject(api, kind, current, {});
}
