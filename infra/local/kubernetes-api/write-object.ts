import { randomInt, randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import {
  badRequest,
  conflict,
  type FieldError,
  invalid,
  invalidValue,
  refused,
} from "../kubernetes-objects/api-error.ts";
import { hasGeneration, type Kind, namespacesKey } from "../kubernetes-objects/kind.ts";
import { type KubeObject, kubeObject } from "../kubernetes-objects/kube-object.ts";
import { withCoreDefaults } from "./core-defaults.ts";
import { settle } from "./delete-object.ts";
import { type Store, timestamp } from "./store.ts";

/** The object as stored, and the unknown fields that were dropped. */
export interface Written {
  object: KubeObject;
  warnings: string[];
}

/** Nothing is stored with `dryRun`; unknown fields are refused with Strict, dropped silently with Ignore. */
export interface WriteOptions {
  dryRun: boolean;
  fieldValidation: string;
}

const namePattern = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Creates an object in `namespace`, "" for a cluster-wide kind. Throws 400, 403, 404, 409 and 422 as the API does. */
export function createObject(
  store: Store,
  kind: Kind,
  namespace: string,
  sent: KubeObject,
  options: WriteOptions,
): Written {
  const { generateName = "", name: given, deletionTimestamp: _, ...metadata } = sent.metadata;
  const name = given === "" && generateName !== "" ? generateName + suffix() : given;
  if (!namePattern.test(name))
    throw invalid(kind, name, [invalidValue("metadata.name", name, "must be a lowercase RFC 1123 subdomain")]);
  if (metadata.resourceVersion !== "") throw badRequest("resourceVersion should not be set on objects to be created");
  if ((metadata.namespace ?? namespace) !== namespace)
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  if (kind.namespaced) checkNamespace(store, kind, namespace, name);
  if (store.get(kind.key, namespace, name)) throw refused(409, "AlreadyExists", kind, name, "already exists");
  const identity = { name, uid: randomUUID(), creationTimestamp: timestamp(store) };
  const place = kind.namespaced ? { namespace } : {};
  const status = kind.hasStatus ? {} : { status: sent["status"] }; // else its subresource alone writes it
  const generation = hasGeneration(kind) ? { generation: 1 } : {};
  const { status: __, ...content } = sent;
  const object = { ...content, ...status, metadata: { ...metadata, ...identity, ...place, ...generation } };
  return commit(store, kind, object, undefined, options);
}

function checkNamespace(store: Store, kind: Kind, namespace: string, name: string): void {
  const found = store.get(namespacesKey, "", namespace);
  const namespaces = { ...kind, group: "", plural: namespacesKey, key: namespacesKey };
  if (found === undefined) throw refused(404, "NotFound", namespaces, namespace, "not found");
  const why = `is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`;
  const cause = {
    reason: "NamespaceTerminating",
    message: `namespace ${namespace} is being terminated`,
    field: "metadata.namespace",
  };
  if (found.metadata.deletionTimestamp !== undefined) throw refused(403, "Forbidden", kind, name, why, [cause]);
}

/** Five letters and digits, none of which spells a word or looks like another. */
function suffix(): string {
  const letters = "bcdfghjklmnpqrstvwxz2456789";
  return Array.from({ length: 5 }, () => letters[randomInt(letters.length)]).join("");
}

/**
 * Replaces `held` by what was sent or what a patch made of it: its status alone with `statusOnly`, everything else
 * without. Throws 409 for a stale resourceVersion or another uid, 400 for another name.
 */
export function updateObject(
  store: Store,
  kind: Kind,
  held: KubeObject,
  sent: KubeObject,
  options: WriteOptions & { statusOnly: boolean },
): Written {
  const { name, namespace, uid, resourceVersion, generation } = held.metadata;
  const { creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds } = held.metadata;
  if (sent.metadata.name !== name || (sent.metadata.namespace ?? namespace) !== namespace)
    throw badRequest(`the name of the object (${sent.metadata.name}) does not match the name on the URL (${name})`);
  if (![uid, ""].includes(sent.metadata.uid))
    throw conflict(
      kind,
      name,
      `Precondition failed: UID in precondition: ${sent.metadata.uid}, UID in object meta: ${uid}`,
    );
  if (![resourceVersion, ""].includes(sent.metadata.resourceVersion))
    throw conflict(
      kind,
      name,
      "the object has been modified; please apply your changes to the latest version and try again",
    );
  const fixed = {
    namespace,
    uid,
    resourceVersion,
    generation,
    creationTimestamp,
    deletionTimestamp,
    deletionGracePeriodSeconds,
  };
  const status = kind.hasStatus ? held["status"] : sent["status"];
  const whole = { ...sent, status, metadata: { ...sent.metadata, ...fixed } };
  return commit(store, kind, options.statusOnly ? { ...held, status: sent["status"] } : whole, held, options);
}

/** The common end of every write. What changes nothing is not written. */
function commit(
  store: Store,
  kind: Kind,
  next: KubeObject,
  old: KubeObject | undefined,
  options: WriteOptions,
): Written {
  const typed = { ...withCoreDefaults(kind.key, next, timestamp(store)), apiVersion: kind.apiVersion, kind: kind.kind };
  // Through JSON: a copy of its own, without the keys that hold undefined.
  const object = kubeObject.parse(JSON.parse(JSON.stringify(typed)));
  const warnings = check(kind, object, old, options.fieldValidation);
  if (hasGeneration(kind) && old && !isDeepStrictEqual(content(object), content(old)))
    object.metadata.generation = (old.metadata.generation ?? 0) + 1;
  if (options.dryRun || isDeepStrictEqual(object, old)) return { object, warnings };
  return { object: settle(store, kind, object), warnings };
}

function content({ metadata: _, status: __, ...rest }: KubeObject): object {
  return rest;
}

function check(kind: Kind, object: KubeObject, old: KubeObject | undefined, fieldValidation: string): string[] {
  const none: { unknown: string[]; errors: FieldError[] } = { unknown: [], errors: [] };
  const { unknown, errors } = kind.schema?.admit(object, old) ?? none;
  const warnings = unknown.map((path) => `unknown field "${path}"`);
  const what = `${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}`;
  if (warnings.length > 0 && fieldValidation === "Strict")
    throw badRequest(`${what}: strict decoding error: ${warnings.join(", ")}`);
  const { name, deletionTimestamp, finalizers = [] } = object.metadata;
  const added = finalizers.filter((one) => !old?.metadata.finalizers?.includes(one));
  if (deletionTimestamp !== undefined && added.length > 0)
    errors.push(
      invalidValue("metadata.finalizers", added, "no new finalizers can be added if the object is being deleted"),
    );
  if (errors.length > 0) throw invalid(kind, name, errors);
  return fieldValidation === "Ignore" ? [] : warnings;
}
