import { customKinds } from "./custom-kinds.ts";
import { isObject, objectAt, objectsAt } from "./json.ts";
import type { Kind } from "./kind.ts";
import { type StoredObject, timestamp } from "./stored-object.ts";

/** What the real server fills in for a built-in kind, in place, at creation and at every later write. */
export function setCoreDefaults(kind: Kind, object: StoredObject, now: number): void {
  if (kind.custom) return;
  if (kind.kind === "Namespace") namespaceDefaults(object);
  if (kind.kind === "Secret") secretDefaults(object);
  if (kind.kind === "Pod") podDefaults(object);
  if (kind.kind === "CustomResourceDefinition") definitionDefaults(object, now);
}

function namespaceDefaults(namespace: StoredObject): void {
  namespace["spec"] ??= { finalizers: ["kubernetes"] };
  namespace["status"] ??= { phase: "Active" };
  namespace.metadata.labels = { ...namespace.metadata.labels, "kubernetes.io/metadata.name": namespace.metadata.name };
}

function secretDefaults(secret: StoredObject): void {
  secret["type"] ??= "Opaque";
  const plain = Object.entries(objectAt(secret, "stringData"));
  if (plain.length > 0) {
    const encoded = plain.map(([key, value]) => [key, Buffer.from(String(value)).toString("base64")]);
    secret["data"] = { ...objectAt(secret, "data"), ...Object.fromEntries(encoded) };
  }
  delete secret["stringData"];
}

function podDefaults(pod: StoredObject): void {
  pod["spec"] = { restartPolicy: "Always", terminationGracePeriodSeconds: 30, ...objectAt(pod, "spec") };
  pod["status"] ??= { phase: "Pending" };
}

function definitionDefaults(definition: StoredObject, now: number): void {
  const [served] = customKinds(definition); // refuses what cannot be served
  const spec = objectAt(definition, "spec");
  const names = objectAt(spec, "names");
  const acceptedNames = { singular: served?.singular, listKind: `${String(names["kind"])}List`, ...names };
  definition["spec"] = { conversion: { strategy: "None" }, ...spec, names: acceptedNames };
  if (isObject(definition["status"]) && Array.isArray(definition["status"]["conditions"])) return;
  const condition = (type: string, reason: string, message: string): object => ({
    type,
    status: "True",
    reason,
    message,
    lastTransitionTime: timestamp(now),
  });
  definition["status"] = {
    acceptedNames,
    storedVersions: objectsAt(spec, "versions")
      .filter((version) => version["storage"] === true)
      .map((version) => version["name"]),
    conditions: [
      condition("NamesAccepted", "NoConflicts", "no conflicts found"),
      condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ],
  };
}
