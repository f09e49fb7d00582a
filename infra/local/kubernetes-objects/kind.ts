import type { CustomSchema } from "./custom-schema.ts";

/** A column of `kubectl get`, as a CustomResourceDefinition writes it. Priority 1 shows with `-o wide` only. */
export interface Column {
  name: string;
  type: string;
  jsonPath: string;
  description: string;
  priority: number;
}

/** One resource that is served. */
export interface Kind {
  group: string;
  version: string;
  /** Group and version as objects have it. */
  apiVersion: string;
  kind: string;
  plural: string;
  singular: string;
  shortNames: string[];
  categories: string[];
  namespaced: boolean;
  hasStatus: boolean;
  columns: Column[];
  /** What a CustomResourceDefinition demands; built-in kinds are taken as they come. */
  schema: CustomSchema | undefined;
  /** Where its objects lie in the store, and what messages call it, e.g. `proxies.crawl.example.com`. */
  key: string;
}

export const namespacesKey = "namespaces";
export const definitionsKey = "customresourcedefinitions.apiextensions.k8s.io";

/** Whether its spec is numbered, for controllers to follow. */
export function hasGeneration({ key, schema }: Kind): boolean {
  return schema !== undefined || key === "pods" || key === definitionsKey;
}
