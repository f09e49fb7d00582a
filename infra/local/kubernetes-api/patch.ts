import { applyPatch, type Operation } from "rfc6902";
import { z } from "zod";
import { ApiError, badRequest } from "./api-error.ts";
import { isObject } from "./json.ts";
import type { Kind } from "./kind.ts";
import { parseWith, unsupported } from "./request-body.ts";
import { strategicMerge } from "./strategic-merge.ts";

const path = z.string();
const value = z.unknown();
const operations: z.ZodType<Operation[]> = z.array(
  z.discriminatedUnion("op", [
    z.object({ op: z.enum(["add", "replace", "test"]), path, value }),
    z.object({ op: z.literal("remove"), path }),
    z.object({ op: z.enum(["move", "copy"]), path, from: z.string() }),
  ]),
);

/**
 * What `target` is after a patch of this content type; `target` stays as it is. Throws 415 for server-side apply and for
 * a strategic patch of a custom kind, 400 for a patch that is none, 422 for a JSON patch that does not fit.
 */
export function patched(kind: Kind, target: object, contentType: string, patch: unknown): unknown {
  const copy = structuredClone(target);
  if (contentType === "application/json-patch+json") return jsonPatched(copy, parseWith(operations, patch));
  if (contentType === "application/apply-patch+yaml")
    throw new ApiError(415, "UnsupportedMediaType", "this server does not support server-side apply: apply without it");
  const strategic = contentType === "application/strategic-merge-patch+json" && !kind.custom;
  if (!strategic && contentType !== "application/merge-patch+json")
    throw unsupported("application/json-patch+json, application/merge-patch+json");
  if (!isObject(patch)) throw badRequest("the patch is not an object");
  return strategic ? strategicMerge(copy, patch) : mergePatch(copy, patch);
}

/** RFC 7386. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged = isObject(target) ? { ...target } : {};
  for (const [key, change] of Object.entries(patch)) {
    if (change === null) delete merged[key];
    else merged[key] = mergePatch(merged[key], change);
  }
  return merged;
}

function jsonPatched(target: object, patch: Operation[]): unknown {
  // The library cannot replace the root itself, which the path "" means: a level above makes it a member.
  const root = { document: target };
  const lowered = patch.map((operation) => ({
    ...operation,
    path: `/document${operation.path}`,
    ...("from" in operation ? { from: `/document${operation.from}` } : {}),
  }));
  for (const [index, error] of applyPatch(root, lowered).entries()) {
    if (error === null) continue;
    const operation = patch[index];
    const what = `the server rejected our request due to an error in our request: ${operation?.op} ${operation?.path}`;
    throw new ApiError(422, "Invalid", `${what}: ${error.message}`);
  }
  return root.document;
}
