import type { Schema } from "./schema.ts";
import type { StoredObject } from "./stored-object.ts";

/** A column of `kubectl get`. Priority 1 shows with `-o wide` only. */
export interface Column {
  name: string;
  type: string;
  description: string;
  priority: number;
  cell(object: StoredObject): unknown;
}

/** One resource that is served under one group and version. */
export interface Kind {
  group: string;
  version: string;
  kind: string;
  plural: string;
  singular: string;
  shortNames: string[];
  categories: string[];
  namespaced: boolean;
  hasStatus: boolean;
  schema: Schema;
  columns: Column[];
  /** Defined by a CustomResourceDefinition: its schema is enforced whole, not only its types. */
  custom: boolean;
  /** Where its objects lie in the store: the two kinds of Event share one place. */
  storeKey: string;
  /** Fields that a field selector may name besides metadata.name and metadata.namespace; undefined: any. */
  selectableFields: string[] | undefined;
  /** Field names that differ from those in the store: [shown, stored]. */
  renamed: [string, string][];
}

export function apiVersionOf(kind: { group: string; version: string }): string {
  return kind.group === "" ? kind.version : `${kind.group}/${kind.version}`;
}

/** The name that messages use, e.g. `proxies.crawl.example.com`. */
export function resourceName(kind: { group: string; plural: string }): string {
  return kind.group === "" ? kind.plural : `${kind.plural}.${kind.group}`;
}

/** Whether its spec is followed by number. */
export function hasGeneration(kind: Kind): boolean {
  return kind.custom || kind.kind === "Pod" || kind.kind === "CustomResourceDefinition";
}

/** Whether it holds other objects, which must all be gone before it goes: a Namespace, a CustomResourceDefinition. */
export function isContainer(kind: Kind): boolean {
  return kind.kind === "Namespace" || kind.kind === "CustomResourceDefinition";
}
