import { z } from "zod";
import { Failure } from "#shared/errors/failure.ts";
import type { ClusterConnection } from "./connection.ts";
import type { ClusterCall } from "./deadline.ts";

/** Kinds as the paths of the API name them, e.g. `crawl.example.com`, `v1alpha1`, `proxies`. */
export interface ResourceKind {
  group: string;
  version: string;
  plural: string;
}

/** The content type of metadata without the rest: a list asks for the List, a watch for single ones. */
export function metadataAccept(kind: "PartialObjectMetadata" | "PartialObjectMetadataList"): string {
  return `application/json;as=${kind};g=meta.k8s.io;v=v1`;
}

/** The paths that list a namespaced kind: one for all namespaces (`*`), or one each. */
export function listPaths(kind: ResourceKind, namespaces: readonly string[] | "*"): string[] {
  const root = kind.group === "" ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
  if (namespaces === "*") return [`${root}/${kind.plural}`];
  return namespaces.map((namespace) => `${root}/namespaces/${encodeURIComponent(namespace)}/${kind.plural}`);
}

const list = z.object({
  metadata: z.object({ resourceVersion: z.string().min(1), continue: z.string().optional() }),
  items: z.array(z.unknown()),
});

export interface Page {
  items: unknown[];
  /** Of the snapshot that all pages of one list show. */
  resourceVersion: string;
}

export interface PageRequest {
  path: string;
  labelSelector?: string | undefined;
  pageSize?: number | undefined;
  /** Asks for PartialObjectMetadata: nothing but kind and metadata of each object. */
  metadataOnly?: boolean | undefined;
}

/**
 * Lists page by page, never from a cache of the server; the deadline counts for each page. When the snapshot expires on
 * the way the list fails with code `Gone`: start again.
 */
export async function* listPages(
  connection: ClusterConnection,
  request: PageRequest,
  call: ClusterCall,
): AsyncGenerator<Page, void> {
  const { path, labelSelector, pageSize = 500, metadataOnly = false } = request;
  const accept = metadataOnly ? { accept: metadataAccept("PartialObjectMetadataList") } : {};
  const query = { limit: String(pageSize), ...(labelSelector === undefined ? {} : { labelSelector }) };
  let token: string | undefined;
  do {
    const read = { path, query: token === undefined ? query : { ...query, continue: token }, ...accept };
    const parsed = list.safeParse(await connection.json(read, call));
    if (!parsed.success) throw unexpected(path);
    yield { items: parsed.data.items, resourceVersion: parsed.data.metadata.resourceVersion };
    token = parsed.data.metadata.continue;
  } while (token);
}

function unexpected(path: string): Failure {
  return new Failure({ class: "Transient", code: "UnexpectedAnswer", message: `GET ${path} answered no list` });
}
