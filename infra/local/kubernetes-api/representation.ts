import { JSONPath } from "jsonpath-plus";
import { ApiError } from "../kubernetes-objects/api-error.ts";
import type { Column, Kind } from "../kubernetes-objects/kind.ts";
import type { KubeObject } from "../kubernetes-objects/kube-object.ts";

/** How an answer shows objects: one, a list with its metadata, or one of a stream, of which `first` may need a head. */
export interface Representation {
  one(object: KubeObject): object;
  list(objects: KubeObject[], metadata: object): object;
  streamed(objects: KubeObject[], metadata: object, first: boolean): object;
}

/** Chooses by the Accept header: tables for kubectl get, metadata for who asks for no more, JSON for everybody else. */
export function representationFor(
  kind: Kind,
  accept: string,
  includeObject: string | null,
  now: () => number,
): Representation {
  const { kind: name, apiVersion } = kind;
  if (accept.includes("as=PartialObjectMetadata"))
    return metadataOnly(accept.includes("as=PartialObjectMetadataList;"));
  if (!accept.includes("as=Table;v=v1;"))
    return {
      one: (object) => ({ ...object, apiVersion }),
      list: (items, metadata) => ({ kind: `${name}List`, apiVersion, metadata, items }),
      streamed: ([object], metadata) => ({ kind: name, apiVersion, metadata, ...object }),
    };
  const nameColumn = { name: "Name", type: "string", format: "name", description: "Name of the object.", priority: 0 };
  const row = (object: KubeObject): object => {
    const cells = kind.columns.map((column) => cell(column, object, now()));
    return {
      cells: [object.metadata.name, ...cells],
      object: includeObject === "Object" ? object : partial(object.metadata),
    };
  };
  const table: Representation["streamed"] = (objects, metadata, first) => {
    const columnDefinitions = first ? [nameColumn, ...kind.columns.map((column) => ({ ...column, format: "" }))] : null;
    return { kind: "Table", apiVersion: "meta.k8s.io/v1", metadata, columnDefinitions, rows: objects.map(row) };
  };
  return {
    one: (object) => table([object], { resourceVersion: object.metadata.resourceVersion }, true),
    list: (objects, metadata) => table(objects, metadata, true),
    streamed: table,
  };
}

function partial(metadata: object): object {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata };
}

/** As the real server, it shows a list only to those who ask for one. */
function metadataOnly(asList: boolean): Representation {
  return {
    one: ({ metadata }) => partial(metadata),
    list: (items, metadata) => {
      if (!asList)
        throw new ApiError(
          406,
          "NotAcceptable",
          "you requested PartialObjectMetadata, but the requested object is a list",
        );
      const list = { kind: "PartialObjectMetadataList", apiVersion: "meta.k8s.io/v1", metadata };
      return { ...list, items: items.map((object) => partial(object.metadata)) };
    },
    streamed: (_objects, metadata) => partial(metadata),
  };
}

function cell({ type, jsonPath }: Column, object: KubeObject, now: number): unknown {
  const [value = null, ...more] = JSONPath<unknown[] | undefined>({ path: `$${jsonPath}`, json: object }) ?? [];
  if (type !== "date") return more.length > 0 ? [value, ...more].join(",") : value;
  const seconds = Math.max(0, Math.floor((now - Date.parse(typeof value === "string" ? value : "")) / 1000));
  if (Number.isNaN(seconds)) return "<unknown>";
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}
