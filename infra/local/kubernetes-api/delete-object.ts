import { z } from "zod";
import { badRequest, conflict, refused } from "../kubernetes-objects/api-error.ts";
import { definitionsKey, hasGeneration, type Kind, namespacesKey } from "../kubernetes-objects/kind.ts";
import { type KubeObject, objectAt } from "../kubernetes-objects/kube-object.ts";
import { type Store, timestamp } from "./store.ts";

/** The body of a DELETE. */
export const deleteOptions = z.looseObject({
  gracePeriodSeconds: z.number().int().nonnegative().optional(),
  propagationPolicy: z.string().optional(),
  dryRun: z.array(z.string()).default([]),
  preconditions: z.looseObject({ uid: z.string(), resourceVersion: z.string() }).partial().default({}),
});

/**
 * Starts the deletion of `object`; returns its state then. It stays, with a deletionTimestamp, while it has finalizers or
 * holds other objects, and a Pod on a node until its agent deletes it again with a grace period of 0. Throws 409 when a
 * precondition does not hold.
 */
export function deleteObject(
  store: Store,
  kind: Kind,
  object: KubeObject,
  options: z.infer<typeof deleteOptions>,
): KubeObject {
  const { metadata } = object;
  const failed = Object.entries(options.preconditions).find(([key, wanted]) => wanted !== metadata[key]);
  if (failed)
    throw conflict(kind, metadata.name, `Precondition failed: ${failed.join(" ")} is not what the object has`);
  if (options.propagationPolicy === "Orphan") throw badRequest("this server does not support --cascade=orphan");
  if (kind.key === namespacesKey && ["default", "kube-system"].includes(metadata.name))
    throw refused(403, "Forbidden", kind, metadata.name, "is forbidden: this namespace may not be deleted");
  const grace = graceSeconds(kind, object, options.gracePeriodSeconds);
  const again = metadata.deletionTimestamp !== undefined;
  // A second request may shorten the time, never extend it.
  if (options.dryRun.includes("All") || (again && grace >= (metadata.deletionGracePeriodSeconds ?? 0))) return object;
  const times = { deletionTimestamp: timestamp(store, grace), deletionGracePeriodSeconds: grace };
  const generation = hasGeneration(kind) && !again ? { generation: (metadata.generation ?? 0) + 1 } : {};
  const status = kind.key === namespacesKey ? { status: { phase: "Terminating" } } : {};
  return settle(store, kind, { ...object, ...status, metadata: { ...metadata, ...times, ...generation } });
}

/** Stores `object`, or removes it when its deletion has nothing more to wait for. */
export function settle(store: Store, kind: Kind, object: KubeObject): KubeObject {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = object.metadata;
  const holdsOthers = kind.key === namespacesKey || kind.key === definitionsKey;
  const waits = finalizers.length > 0 || deletionGracePeriodSeconds > 0 || holdsOthers;
  return store.write(kind.key, object, deletionTimestamp !== undefined && !waits);
}

/** Only a Pod that a node may be running gets time to end. */
function graceSeconds(kind: Kind, object: KubeObject, wanted: number | undefined): number {
  const { nodeName, terminationGracePeriodSeconds } = objectAt(object, "spec");
  const over = ["Succeeded", "Failed"].includes(String(objectAt(object, "status")["phase"]));
  if (kind.key !== "pods" || typeof nodeName !== "string" || over) return 0;
  return wanted ?? Number(terminationGracePeriodSeconds);
}
