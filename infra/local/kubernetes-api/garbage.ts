import { definitionsKey, type Kind, namespacesKey } from "../kubernetes-objects/kind.ts";
import type { KubeObject } from "../kubernetes-objects/kube-object.ts";
import { deleteObject, deleteOptions } from "./delete-object.ts";
import { servedKinds } from "./kinds.ts";
import type { Store } from "./store.ts";

/**
 * Starts what controllers do in a real cluster: objects whose owners are all gone are deleted, and so is the content of a
 * Namespace or CustomResourceDefinition that is being deleted, which goes when it is empty. Runs after each change that
 * may call for it. Returns the function that ends it.
 */
export function startGarbageCollection(store: Store): () => void {
  let scheduled: NodeJS.Immediate | undefined;
  const schedule = (): void => {
    scheduled ??= setImmediate(() => {
      scheduled = undefined;
      collect(store);
    });
  };
  schedule(); // what an earlier life of this server did not finish
  const unsubscribe = store.subscribe(({ type, object: { metadata } }) => {
    if (type === "DELETED" || metadata.deletionTimestamp || metadata.ownerReferences) schedule();
  });
  return () => {
    unsubscribe();
    clearImmediate(scheduled);
  };
}

function collect(store: Store): void {
  const kinds = new Map(servedKinds(store).map((kind) => [kind.key, kind]));
  const everything = store.entries();
  const alive = new Set(everything.map(([, { metadata }]) => metadata.uid));
  const isClosing = (key: string, { metadata }: KubeObject): boolean =>
    [namespacesKey, definitionsKey].includes(key) && metadata.deletionTimestamp !== undefined;
  const closing = everything.filter(([key, object]) => isClosing(key, object));
  const places = new Set(closing.map(([key, { metadata }]) => `${key}/${metadata.name}`));
  const full = new Set<string>();
  for (const [key, { metadata }] of everything) {
    const kind = kinds.get(key);
    const around = [`${namespacesKey}/${metadata.namespace}`, `${definitionsKey}/${key}`].filter((one) =>
      places.has(one),
    );
    for (const place of around) full.add(place);
    const owners = metadata.ownerReferences ?? [];
    const orphaned = owners.length > 0 && !owners.some(({ uid }) => alive.has(uid));
    if (kind && (orphaned || around.length > 0)) deleteOnce(store, kind, metadata);
  }
  for (const [key, container] of closing) {
    const waits = full.has(`${key}/${container.metadata.name}`) || container.metadata.finalizers?.length;
    if (!waits) store.write(key, container, true);
  }
}

/** One deletion of a round may have caused another: looks again. */
function deleteOnce(store: Store, kind: Kind, { namespace = "", name, uid }: KubeObject["metadata"]): void {
  const current = store.get(kind.key, namespace, name);
  if (current?.metadata.uid !== uid || current.metadata.deletionTimestamp !== undefined) return;
  deleteObject(store, kind, current, deleteOptions.parse({}));
}
