import { z } from "zod";
import { ApiError, badRequest, conflict } from "./api-error.ts";
import type { ApiState } from "./api-state.ts";
import { objectAt } from "./json.ts";
import { hasGeneration, isContainer, type Kind } from "./kind.ts";
import { type StoredObject, timestamp } from "./stored-object.ts";

/** The body of a DELETE; query parameters of the same names are merged into it. */
export const deleteOptions = z.looseObject({
  gracePeriodSeconds: z.number().int().nonnegative().optional(),
  propagationPolicy: z.string().optional(),
  dryRun: z.array(z.string()).optional(),
  preconditions: z.looseObject({ uid: z.string().optional(), resourceVersion: z.string().optional() }).optional(),
});
export type DeleteOptions = z.infer<typeof deleteOptions>;

/**
 * Starts the deletion of `object` and returns its state, its last one if it went at once. It stays, with a
 * deletionTimestamp, while it has finalizers, while it holds other objects, and a Pod on a node until its agent has
 * stopped it and deletes it again with a grace period of 0. Throws 409 when a precondition does not hold.
 */
export function deleteObject(api: ApiState, kind: Kind, object: StoredObject, options: DeleteOptions): StoredObject {
  checkPreconditions(kind, object, options);
  if (options.propagationPolicy === "Orphan") throw badRequest("this server does not support --cascade=orphan");
  if (kind.kind === "Namespace" && ["default", "kube-system"].includes(object.metadata.name))
    throw new ApiError(
      403,
      "Forbidden",
      `namespaces "${object.metadata.name}" is forbidden: this namespace may not be deleted`,
    );
  if (options.dryRun?.includes("All") === true) return object;
  const grace = graceSeconds(kind, object, options);
  const { deletionTimestamp, deletionGracePeriodSeconds, generation } = object.metadata;
  // A second request may shorten the time, never extend it.
  if (deletionTimestamp !== undefined && grace >= (deletionGracePeriodSeconds ?? 0) && grace > 0) return object;
  const metadata = {
    ...object.metadata,
    deletionTimestamp:
      deletionTimestamp !== undefined && grace === 0 ? deletionTimestamp : timestamp(api.now() + grace * 1000),
    deletionGracePeriodSeconds: grace,
    ...(hasGeneration(kind) && deletionTimestamp === undefined ? { generation: (generation ?? 0) + 1 } : {}),
  };
  const marked: StoredObject = { ...object, metadata };
  if (kind.kind === "Namespace") marked["status"] = { ...objectAt(object, "status"), phase: "Terminating" };
  const unchanged = deletionTimestamp !== undefined && deletionGracePeriodSeconds === grace;
  return unchanged && !mayGo(kind, marked) ? object : settle(api, kind, marked);
}

/** Stores `object`, or removes it when its deletion has nothing to wait for any more. */
export function settle(api: ApiState, kind: Kind, object: StoredObject): StoredObject {
  return mayGo(kind, object) ? api.store.remove(kind.storeKey, object) : api.store.put(kind.storeKey, object);
}

function mayGo(kind: Kind, { metadata }: StoredObject): boolean {
  if (metadata.deletionTimestamp === undefined || isContainer(kind)) return false;
  return (metadata.finalizers ?? []).length === 0 && (metadata.deletionGracePeriodSeconds ?? 0) === 0;
}

function checkPreconditions(kind: Kind, { metadata }: StoredObject, { preconditions }: DeleteOptions): void {
  for (const key of ["uid", "resourceVersion"] as const) {
    const wanted = preconditions?.[key];
    const label = key === "uid" ? "UID" : "ResourceVersion";
    if (wanted !== undefined && wanted !== metadata[key]) {
      const why = `Precondition failed: ${label} in precondition: ${wanted}, ${label} in object meta: ${metadata[key]}`;
      throw conflict(kind, metadata.name, why);
    }
  }
}

/** Only a Pod that a node may be running is given time to end. */
function graceSeconds(kind: Kind, object: StoredObject, options: DeleteOptions): number {
  const spec = objectAt(object, "spec");
  const over = ["Succeeded", "Failed"].includes(String(objectAt(object, "status")["phase"]));
  if (kind.kind !== "Pod" || typeof spec["nodeName"] !== "string" || over) return 0;
  const wanted = options.gracePeriodSeconds ?? spec["terminationGracePeriodSeconds"];
  return typeof wanted === "number" ? wanted : 30;
}
