import { isDeepStrictEqual } from "node:util";
import { admit } from "./admission.ts";
import { badRequest, conflict, invalid, invalidValue } from "./api-error.ts";
import type { ApiState, WriteOptions } from "./api-state.ts";
import { setCoreDefaults } from "./core-defaults.ts";
import type { Written } from "./create-object.ts";
import { settle } from "./delete-object.ts";
import { without } from "./json.ts";
import { apiVersionOf, hasGeneration, type Kind } from "./kind.ts";
import { toShown, toStored } from "./shown-form.ts";
import { type SentObject, type StoredObject, storedObject } from "./stored-object.ts";

/**
 * Replaces `held` by what was sent (or by the result of a patch): its status alone with `statusOnly`, everything but the
 * status otherwise. A write that changes nothing is no write. Throws 409 for a stale resourceVersion or another uid.
 */
export function updateObject(
  api: ApiState,
  kind: Kind,
  held: StoredObject,
  sent: SentObject,
  options: WriteOptions & { statusOnly: boolean },
): Written {
  const old = toShown(kind, held);
  checkIdentity(kind, old, sent);
  const next = options.statusOnly ? { ...old, status: sent["status"] } : replaced(kind, old, sent);
  setCoreDefaults(kind, next, api.now());
  // A copy of its own, without keys that hold undefined: what is compared and stored is what JSON can say.
  const clean: StoredObject = storedObject.parse(JSON.parse(JSON.stringify(next)));
  const warnings = admit(kind, clean, old, options.fieldValidation);
  checkFinalizers(kind, old, clean);
  const content = (object: StoredObject): object => without(object, "metadata", "status");
  if (hasGeneration(kind) && !isDeepStrictEqual(content(clean), content(old)))
    clean.metadata.generation = (old.metadata.generation ?? 0) + 1;
  if (isDeepStrictEqual(clean, old)) return { object: held, warnings };
  const stored = toStored(kind, clean);
  return { object: options.dryRun ? stored : settle(api, kind, stored), warnings };
}

function checkIdentity(kind: Kind, old: StoredObject, { metadata }: SentObject): void {
  const { name, namespace, uid, resourceVersion } = old.metadata;
  if (metadata.name !== undefined && metadata.name !== name)
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
  if (metadata.namespace !== undefined && metadata.namespace !== namespace)
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  if (metadata.uid !== undefined && metadata.uid !== uid)
    throw conflict(kind, name, `Precondition failed: UID in precondition: ${metadata.uid}, UID in object meta: ${uid}`);
  if (metadata.resourceVersion === undefined || metadata.resourceVersion === "") return;
  if (metadata.resourceVersion !== resourceVersion)
    throw conflict(
      kind,
      name,
      "the object has been modified; please apply your changes to the latest version and try again",
    );
}

function replaced(kind: Kind, old: StoredObject, sent: SentObject): StoredObject {
  const { name, namespace, uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds } = old.metadata;
  const { resourceVersion, generation } = old.metadata;
  const kept = { name, namespace, uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds };
  const metadata = { ...sent.metadata, ...kept, resourceVersion, generation };
  const status = kind.hasStatus ? old["status"] : sent["status"];
  return { ...sent, apiVersion: apiVersionOf(kind), kind: kind.kind, metadata, status };
}

function checkFinalizers(kind: Kind, old: StoredObject, next: StoredObject): void {
  if (old.metadata.deletionTimestamp === undefined) return;
  const added = (next.metadata.finalizers ?? []).filter((one) => !old.metadata.finalizers?.includes(one));
  if (added.length === 0) return;
  const why = `no new finalizers can be added if the object is being deleted, found new finalizers ${added.join(", ")}`;
  throw invalid(kind, old.metadata.name, [invalidValue("metadata.finalizers", added, why)]);
}
