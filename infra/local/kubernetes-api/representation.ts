import { apiVersionOf, type Column, type Kind } from "./kind.ts";
import type { Query } from "./request.ts";
import { toShown } from "./shown-form.ts";
import type { StoredObject } from "./stored-object.ts";

/** How objects of one request are written: whole, their metadata alone, or as the table that kubectl prints. */
export interface Representation {
  one(object: StoredObject): object;
  list(objects: StoredObject[], metadata: object): object;
  /** An object of a watch; `first` of the stream carries the columns of a table. */
  watched(object: StoredObject, first: boolean): object;
  bookmark(metadata: object, first: boolean): object;
}

const metaVersion = "meta.k8s.io/v1";

/** Chooses by the Accept header; the first known format wins, JSON when there is none. */
export function representationFor(
  kind: Kind,
  accept: string,
  includeObject: Query["includeObject"],
  now: () => number,
): Representation {
  if (/as=Table;v=v1;|as=Table;g=[^;]*;v=v1|v=v1;g=[^;]*;as=Table/.test(accept))
    return tables(kind, includeObject, now);
  if (accept.includes("as=PartialObjectMetadata"))
    return plain(partial, `PartialObjectMetadataList`, metaVersion, "PartialObjectMetadata");
  return plain((object) => toShown(kind, object), `${kind.kind}List`, apiVersionOf(kind), kind.kind);
}

function partial({ metadata }: StoredObject): object {
  return { kind: "PartialObjectMetadata", apiVersion: metaVersion, metadata };
}

function plain(
  one: (object: StoredObject) => object,
  listKind: string,
  apiVersion: string,
  kind: string,
): Representation {
  return {
    one,
    list: (objects, metadata) => ({ kind: listKind, apiVersion, metadata, items: objects.map(one) }),
    watched: one,
    bookmark: (metadata) => ({ kind, apiVersion, metadata }),
  };
}

function tables(kind: Kind, includeObject: Query["includeObject"], now: () => number): Representation {
  const nameColumn = { name: "Name", type: "string", format: "name", description: "Name of the object.", priority: 0 };
  const described = ({ name, type, description, priority }: Column): object => ({
    ...{ name, type, format: "", description, priority },
  });
  const columnDefinitions = [nameColumn, ...kind.columns.map(described)];
  const row = (stored: StoredObject): object => {
    const shown = toShown(kind, stored);
    const object = includeObject === "None" ? {} : { object: includeObject === "Object" ? shown : partial(shown) };
    return { cells: [shown.metadata.name, ...kind.columns.map((column) => cell(column, shown, now()))], ...object };
  };
  const table = (objects: StoredObject[], metadata: object, withColumns: boolean): object => ({
    kind: "Table",
    apiVersion: metaVersion,
    metadata,
    columnDefinitions: withColumns ? columnDefinitions : null,
    rows: objects.map(row),
  });
  const version = ({ metadata }: StoredObject): object => ({ resourceVersion: metadata.resourceVersion });
  return {
    one: (object) => table([object], version(object), true),
    list: (objects, metadata) => table(objects, metadata, true),
    watched: (object, first) => table([object], version(object), first),
    bookmark: (metadata, first) => table([], metadata, first),
  };
}

function cell(column: Column, object: StoredObject, now: number): unknown {
  const value = column.cell(object);
  if (column.type === "date") return typeof value === "string" ? age(now - Date.parse(value)) : "<unknown>";
  if (value === undefined) return null;
  return typeof value === "object" ? JSON.stringify(value) : value;
}

/** As kubectl writes an age: in the largest unit that still says something. */
function age(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}
