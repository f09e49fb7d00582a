import type { V1ObjectMeta } from "@kubernetes/client-node";
import { Failure, isNotFound } from "#shared/errors/failure.ts";
import type { Call, Owner } from "../contract.ts";
import type { Objects } from "./objects.ts";
import { isOwnedBy } from "./owner-labels.ts";

interface WithMetadata {
  kind?: string;
  metadata?: V1ObjectMeta;
}

/** Where the objects of one instance lie: all of them have its name. */
export interface ObjectPlace {
  namespace: string;
  name: string;
}

/**
 * Makes an object, or finds the one that an earlier call made. Rejects Permanent `NameConflict` where the name is
 * taken by something that is not exactly this owner's: it is left alone.
 */
export async function ensure<T extends WithMetadata>(
  objects: Objects<T>,
  manifest: T,
  place: ObjectPlace,
  owner: Owner,
  call: Call,
): Promise<void> {
  try {
    await objects.create(place.namespace, manifest, call);
  } catch (error) {
    if (!(error instanceof Failure && error.code === "AlreadyExists")) throw error;
    const { metadata } = await objects.read(place.namespace, place.name, call);
    const what = `${manifest.kind ?? "object"} ${place.namespace}/${place.name}`;
    if (!isOwnedBy(metadata, owner)) {
      const message = `${what} exists and does not carry the marks of this instance: it is left alone`;
      throw new Failure({ class: "Permanent", code: "NameConflict", message });
    }
    if (metadata?.deletionTimestamp !== undefined) {
      throw new Failure({ class: "Transient", code: "BeingDeleted", message: `${what} is being deleted` });
    }
  }
}

/**
 * Deletes an object of this owner. "going": it was still seen. Something else under the name stays, and counts as
 * gone: ours is not there.
 */
export async function remove<T extends WithMetadata>(
  objects: Objects<T>,
  place: ObjectPlace,
  owner: Owner,
  call: Call,
): Promise<"gone" | "going"> {
  try {
    const { metadata } = await objects.read(place.namespace, place.name, call);
    if (metadata?.uid === undefined || !isOwnedBy(metadata, owner)) return "gone";
    // A second delete would only cost: the first one cannot be called off.
    if (metadata.deletionTimestamp === undefined) await objects.delete(place.namespace, place.name, metadata.uid, call);
    return "going";
  } catch (error) {
    if (isNotFound(error)) return "gone";
    throw error;
  }
}
