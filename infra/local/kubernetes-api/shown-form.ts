import { type JsonObject } from "./json.ts";
import { apiVersionOf, type Kind } from "./kind.ts";
import type { StoredObject } from "./stored-object.ts";

/** A stored object as this kind shows it: another version of it may have been written. */
export function toShown(kind: Kind, stored: StoredObject): StoredObject {
  const { apiVersion: _, kind: __, metadata, ...rest } = stored;
  const fields = rename(
    rest,
    kind.renamed.map(([shown, held]) => [held, shown]),
  );
  return { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata, ...fields };
}

/** The form that lies in the store. */
export function toStored(kind: Kind, shown: StoredObject): StoredObject {
  const { apiVersion, kind: kindName, metadata, ...rest } = shown;
  return { apiVersion, kind: kindName, metadata, ...rename(rest, kind.renamed) };
}

function rename(fields: JsonObject, names: [string, string][]): JsonObject {
  const table = new Map(names);
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [table.get(key) ?? key, value]));
}
