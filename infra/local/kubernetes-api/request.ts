import { ApiError, badRequest, refused, unknownPath } from "../kubernetes-objects/api-error.ts";
import type { Kind } from "../kubernetes-objects/kind.ts";
import { type KubeObject, kubeObject } from "../kubernetes-objects/kube-object.ts";
import { decodeProtobuf } from "../kubernetes-objects/protobuf.ts";
import { fieldMatcher, labelMatcher } from "../kubernetes-objects/selectors.ts";
import { servedKinds } from "./kinds.ts";
import type { Store } from "./store.ts";

/** What a path names: one object (its `subresource`), or all of a kind in a namespace, or in all of them (""). */
export interface Target {
  kind: Kind;
  namespace: string;
  name: string;
  subresource: string;
}

/** Resolves the path after /api/v1 or /apis/GROUP/VERSION. Throws a 404 for what is not served. */
export function findTarget(store: Store, apiVersion: string, path: string[]): Target {
  const inside = path[0] === "namespaces" && path.length > 2 && path[2] !== "status";
  const [plural, name = "", subresource = "", ...more] = inside ? path.slice(2) : path;
  const kind = servedKinds(store).find((one) => one.apiVersion === apiVersion && one.plural === plural);
  if (kind === undefined || more.length > 0) throw unknownPath();
  const known = ["", kind.hasStatus ? "status" : "", kind.key === "pods" ? "binding" : ""].includes(subresource);
  if (!known || (kind.namespaced ? !inside && name !== "" : inside)) throw unknownPath();
  return { kind, namespace: (inside && path[1]) || "", name, subresource };
}

/** The object that a path names. Throws a 404 when there is none. */
export function findObject(store: Store, { kind, namespace, name }: Target): KubeObject {
  const found = store.get(kind.key, namespace, name);
  if (found === undefined) throw refused(404, "NotFound", kind, name, "not found");
  return found;
}

/** Which objects a list or a watch is about. Throws a 400 for a selector that is none. */
export function matcherFor({ kind, namespace, name }: Target, query: URLSearchParams): (object: KubeObject) => boolean {
  const labels = labelMatcher(query.get("labelSelector") ?? "");
  const fields = fieldMatcher(query.get("fieldSelector") ?? "", kind.schema === undefined);
  return (object) => {
    const placed = ["", object.metadata.namespace].includes(namespace) && ["", object.metadata.name].includes(name);
    return placed && labels(object) && fields(object);
  };
}

/** A number of the query, undefined when it is not given. Throws a 400 for anything else. */
export function numberIn(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name) ?? "";
  if (text !== "" && !/^\d{1,9}$/.test(text)) throw badRequest(`${name}: Invalid value: "${text}": must be a number`);
  return text === "" ? undefined : Number(text);
}

// Deeper than any object of ours, and far from where recursion overflows the stack.
const maxDepth = 500;

/** The JSON value in a body, undefined for an empty one. Throws 400 for garbage and 415 for another format. */
export function decodeBody(contentType: string, body: Buffer): unknown {
  if (body.length === 0) return undefined;
  const accepted = "the body of the request was in an unknown format - accepted media types include: application/json";
  try {
    if (contentType === "application/vnd.kubernetes.protobuf") return decodeProtobuf(body);
    if (contentType === "" || contentType.endsWith("json")) return shallow(JSON.parse(body.toString("utf8")));
  } catch (error) {
    throw badRequest(`the body of the request cannot be read: ${error instanceof Error ? error.message : "garbage"}`);
  }
  throw new ApiError(415, "UnsupportedMediaType", accepted);
}

/** Level by level: recursion is what such a value is kept away from. */
function shallow(value: unknown): unknown {
  let level = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > maxDepth) throw new Error(`it is nested deeper than ${maxDepth}`);
    level = level.flatMap((one): unknown[] => (typeof one === "object" && one !== null ? Object.values(one) : []));
  }
  return value;
}

/** Throws a 400 that names the first thing that makes it no Kubernetes object. */
export function parseObject(value: unknown): KubeObject {
  const parsed = kubeObject.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw badRequest(`the object is not valid: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}`);
}
