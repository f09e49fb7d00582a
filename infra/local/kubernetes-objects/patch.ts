import { applyPatch, type Operation } from "rfc6902";
import { z } from "zod";
import { ApiError, badRequest, unprocessable } from "../kubernetes-objects/api-error.ts";
import { isObject, type JsonObject, type KubeObject } from "../kubernetes-objects/kube-object.ts";

// The library cannot replace the root, which the path "" means: one level above makes it a member.
const path = z.string().transform((pointer) => `/document${pointer}`);
const operations: z.ZodType<Operation[]> = z.array(
  z.discriminatedUnion("op", [
    z.object({ op: z.enum(["add", "replace", "test"]), path, value: z.unknown() }),
    z.object({ op: z.literal("remove"), path }),
    z.object({ op: z.enum(["move", "copy"]), path, from: path }),
  ]),
);

// The lists of built-in kinds whose items have a key (patchMergeKey in k8s.io/api): a strategic patch merges them.
const byName = { containers: "name", env: "name", initContainers: "name", volumes: "name" };
const itemKeys = new Map(
  Object.entries({ ...byName, conditions: "type", ownerReferences: "uid", ports: "containerPort" }),
);

export type PatchFormat = "json" | "merge" | "strategic";

/** Throws 415 for server-side apply, and for a strategic patch of a custom kind. */
export function patchFormat(contentType: string, custom: boolean): PatchFormat {
  if (contentType === "application/json-patch+json") return "json";
  if (contentType === "application/merge-patch+json") return "merge";
  if (contentType === "application/strategic-merge-patch+json" && !custom) return "strategic";
  const accepted = "application/json-patch+json, application/merge-patch+json";
  const what = `${contentType} is not supported here (no server-side apply) - accepted media types include: ${accepted}`;
  throw new ApiError(415, "UnsupportedMediaType", what);
}

/**
 * What `target` is after a patch; `target` stays as it is. Throws 400 for a patch that is none, 422 for a JSON patch that
 * does not fit.
 */
export function patched(target: KubeObject, format: PatchFormat, patch: unknown): unknown {
  if (format === "json") return jsonPatched(structuredClone(target), patch);
  if (!isObject(patch)) throw badRequest("the patch is not an object");
  return merged(target, patch, format === "strategic");
}

function jsonPatched(document: object, patch: unknown): unknown {
  const parsed = operations.safeParse(patch);
  if (!parsed.success) throw badRequest("the patch is not a list of JSON patch operations");
  const root = { document };
  const failed = applyPatch(root, parsed.data).find((error) => error !== null);
  if (failed) throw unprocessable(`the server rejected our request due to an error in our request: ${failed.message}`);
  return root.document;
}

/** A merge patch (RFC 7386), and with `strategic` what built-in kinds have beyond it. */
function merged(target: unknown, patch: unknown, strategic: boolean): unknown {
  if (!isObject(patch)) return patch;
  const result: JsonObject = isObject(target) && patch["$patch"] !== "replace" ? { ...target } : {};
  for (const [key, change] of Object.entries(patch)) {
    const removedFrom = /^\$deleteFromPrimitiveList\/(.*)$/.exec(key)?.[1];
    if (strategic && removedFrom !== undefined) result[removedFrom] = minus(result[removedFrom], change);
    else if (strategic && key.startsWith("$"))
      continue; // what orders lists carries no meaning here
    else if (change === null) delete result[key];
    else if (strategic && Array.isArray(change)) result[key] = mergedList(key, result[key], change);
    else result[key] = merged(result[key], change, strategic);
  }
  return result;
}

function mergedList(name: string, held: unknown, change: unknown[]): unknown[] {
  const current: unknown[] = Array.isArray(held) ? held : [];
  const key = itemKeys.get(name);
  if (key === undefined) return name === "finalizers" ? [...new Set([...current, ...change])] : change;
  return change.filter(isObject).reduce<unknown[]>((list, item) => {
    if (item["$patch"] === "replace") return [];
    const same = (one: unknown): boolean => isObject(one) && one[key] === item[key];
    const next = merged(list.find(same), item, true);
    if (item["$patch"] === "delete") return list.filter((one) => !same(one));
    return list.some(same) ? list.map((one) => (same(one) ? next : one)) : [...list, next];
  }, current);
}

function minus(held: unknown, removed: unknown): unknown {
  return Array.isArray(held) && Array.isArray(removed) ? held.filter((item) => !removed.includes(item)) : held;
}
