import { randomBytes, randomUUID } from "node:crypto";
import { admit } from "./admission.ts";
import { ApiError, badRequest, invalid, invalidValue, notFound } from "./api-error.ts";
import type { ApiState, WriteOptions } from "./api-state.ts";
import { setCoreDefaults } from "./core-defaults.ts";
import { apiVersionOf, hasGeneration, type Kind, resourceName } from "./kind.ts";
import { namespacesKey } from "./kinds.ts";
import { toStored } from "./shown-form.ts";
import { type SentObject, type StoredObject, storedObject, timestamp } from "./stored-object.ts";

/** The object as stored, and what the client should be warned of. */
export interface Written {
  object: StoredObject;
  warnings: string[];
}

/** Creates an object in `namespace` (undefined for cluster-wide kinds). Throws 404, 403, 409, 400 and 422 as the API does. */
export function createObject(
  api: ApiState,
  kind: Kind,
  namespace: string | undefined,
  sent: SentObject,
  options: WriteOptions,
): Written {
  const name = nameOf(kind, sent);
  if (sent.metadata.resourceVersion !== undefined && sent.metadata.resourceVersion !== "")
    throw new ApiError(500, "InternalError", "resourceVersion should not be set on objects to be created");
  if (kind.namespaced) checkNamespace(api, kind, namespace, sent);
  const object: StoredObject = {
    ...sent,
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    metadata: {
      ...sent.metadata,
      name,
      namespace,
      uid: randomUUID(),
      resourceVersion: "",
      generation: hasGeneration(kind) ? 1 : undefined,
      creationTimestamp: timestamp(api.now()),
      deletionTimestamp: undefined,
      deletionGracePeriodSeconds: undefined,
    },
  };
  if (kind.hasStatus) delete object["status"]; // written through the status subresource alone
  setCoreDefaults(kind, object, api.now());
  const clean: StoredObject = storedObject.parse(JSON.parse(JSON.stringify(object)));
  const warnings = admit(kind, clean, undefined, options.fieldValidation);
  if (api.store.get(kind.storeKey, namespace, name) !== undefined) {
    const details = { name, group: kind.group, kind: kind.plural };
    throw new ApiError(409, "AlreadyExists", `${resourceName(kind)} "${name}" already exists`, details);
  }
  const stored = toStored(kind, clean);
  return { object: options.dryRun ? stored : api.store.put(kind.storeKey, stored), warnings };
}

function nameOf(kind: Kind, { metadata }: SentObject): string {
  const name = metadata.name ?? (metadata.generateName === undefined ? "" : metadata.generateName + suffix());
  if (name === "")
    throw invalid(kind, name, [
      {
        reason: "FieldValueRequired",
        field: "metadata.name",
        message: "Required value: name or generateName is required",
      },
    ]);
  if (name.length > 253 || !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name)) {
    const rule =
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
    throw invalid(kind, name, [invalidValue("metadata.name", name, rule)]);
  }
  return name;
}

function suffix(): string {
  return randomBytes(4).toString("hex").slice(0, 5);
}

function checkNamespace(api: ApiState, kind: Kind, namespace: string | undefined, { metadata }: SentObject): void {
  if (namespace === undefined) throw badRequest(`an empty namespace may not be set when a ${kind.kind} is created`);
  if (metadata.namespace !== undefined && metadata.namespace !== "" && metadata.namespace !== namespace)
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  const found = api.store.get(namespacesKey, undefined, namespace);
  const namespaceKind = api.kinds.ofStoreKey(namespacesKey);
  if (found === undefined && namespaceKind !== undefined) throw notFound(namespaceKind, namespace);
  if (found?.metadata.deletionTimestamp === undefined) return;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const message = `${resourceName(kind)} "${metadata.name ?? ""}" is forbidden: ${why}`;
  const causes = [{ reason: "NamespaceTerminating", message: why, field: "metadata.namespace" }];
  throw new ApiError(403, "Forbidden", message, { name: metadata.name, kind: kind.plural, causes });
}
