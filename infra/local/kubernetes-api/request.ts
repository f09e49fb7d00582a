import { z } from "zod";
import { badRequest, notFound, unknownPath } from "./api-error.ts";
import type { ApiState } from "./api-state.ts";
import type { Kind } from "./kind.ts";
import type { StoredObject } from "./stored-object.ts";

const flag = z.enum(["true", "1", "false", "0"]).transform((value) => value === "true" || value === "1");

const queryParameters = z.looseObject({
  labelSelector: z.string().optional(),
  fieldSelector: z.string().optional(),
  limit: z.coerce.number().int().nonnegative().default(0),
  continue: z.string().optional(),
  resourceVersion: z.string().regex(/^\d*$/, "must be a number").optional(),
  resourceVersionMatch: z.enum(["Exact", "NotOlderThan"]).optional(),
  watch: flag.default(false),
  timeoutSeconds: z.coerce.number().positive().optional(),
  allowWatchBookmarks: flag.default(false),
  sendInitialEvents: flag.optional(),
  includeObject: z.enum(["None", "Metadata", "Object"]).default("Metadata"),
  dryRun: z.literal("All").optional(),
  fieldValidation: z.enum(["Strict", "Warn", "Ignore"]).default("Warn"),
  gracePeriodSeconds: z.coerce.number().int().nonnegative().optional(),
  propagationPolicy: z.string().optional(),
});
export type Query = z.infer<typeof queryParameters>;

/** What a path of the resource API names: one object, or all of a kind (in one namespace, or in all). */
export interface Target {
  kind: Kind;
  namespace: string | undefined;
  name: string | undefined;
  subresource: string | undefined;
}

/** Throws a 400 that names the parameter. */
export function parseQuery(search: URLSearchParams): Query {
  const parsed = queryParameters.safeParse(Object.fromEntries(search));
  if (parsed.success) return parsed.data;
  throw badRequest(parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join(", "));
}

/** Resolves the path segments after /api/v1 or /apis/GROUP/VERSION. Throws a 404 for what is not served. */
export function findTarget(api: ApiState, group: string, version: string, segments: string[]): Target {
  const inNamespace = segments[0] === "namespaces" && segments.length > 2 && segments[2] !== "status";
  const namespace = inNamespace ? segments[1] : undefined;
  const [plural = "", name, subresource, ...more] = inNamespace ? segments.slice(2) : segments;
  const kind = api.kinds.find(group, version, plural);
  const known =
    subresource === undefined ||
    (subresource === "status" && kind?.hasStatus === true) ||
    (subresource === "binding" && kind?.kind === "Pod");
  const scoped = kind?.namespaced === true ? name === undefined || inNamespace : !inNamespace;
  if (kind === undefined || !known || !scoped || more.length > 0) throw unknownPath();
  return { kind, namespace, name, subresource };
}

/** Throws a 404 when there is none. */
export function findObject(api: ApiState, { kind, namespace, name = "" }: Target): StoredObject {
  const found = api.store.get(kind.storeKey, namespace, name);
  if (found === undefined) throw notFound(kind, name);
  return found;
}
