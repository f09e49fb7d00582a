import { ApiError, badRequest, conflict, unprocessable } from "../kubernetes-objects/api-error.ts";
import { hasGeneration, type Kind } from "../kubernetes-objects/kind.ts";
import { type KubeObject, objectAt } from "../kubernetes-objects/kube-object.ts";
import { patched, patchFormat } from "../kubernetes-objects/patch.ts";
import { deleteObject, deleteOptions } from "./delete-object.ts";
import type { Representation } from "./representation.ts";
import { decodeBody, findObject, matcherFor, numberIn, parseObject, type Target } from "./request.ts";
import { placeOf, type Store, timestamp } from "./store.ts";
import { createObject, updateObject, type Written } from "./write-object.ts";

/** One request for a resource that is no watch. */
export interface ResourceRequest {
  method: string;
  target: Target;
  query: URLSearchParams;
  representation: Representation;
  contentType: string;
  body: Buffer;
}

export interface Answer {
  code: number;
  body: object;
  warnings?: string[];
}

const success = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" };

/** Carries out a request. Throws an ApiError for every refusal. */
export function answer(store: Store, request: ResourceRequest): Answer {
  const { method, target, query, representation, contentType, body } = request;
  const { kind, subresource } = target;
  const options = { dryRun: query.get("dryRun") === "All", fieldValidation: query.get("fieldValidation") ?? "Warn" };
  const update = { ...options, statusOnly: subresource === "status" };
  const sent = (): KubeObject => typed(kind, parseObject(decodeBody(contentType, body)));
  const written = (code: number, { object, warnings }: Written): Answer => ({
    code,
    body: representation.one(object),
    warnings,
  });
  if (target.name === "") {
    if (method === "GET") return { code: 200, body: listObjects(store, request) };
    if (method === "POST") return written(201, createObject(store, kind, target.namespace, sent(), options));
  } else if (subresource === "binding") {
    if (method === "POST") return { code: 201, body: bindPod(store, target, sent()) };
  } else {
    // Before anything is looked up: server-side apply of a new object is refused for what it is.
    const format = method === "PATCH" ? patchFormat(contentType, kind.schema !== undefined) : undefined;
    const held = findObject(store, target);
    if (method === "GET") return { code: 200, body: representation.one(held) };
    if (method === "PUT") return written(200, updateObject(store, kind, held, versioned(kind, sent()), update));
    if (format !== undefined) {
      const result = parseObject(patched(held, format, decodeBody("application/json", body)));
      return written(200, updateObject(store, kind, held, result, update));
    }
    if (method === "DELETE" && subresource === "") return { code: 200, body: deleteOne(store, request, held) };
  }
  throw new ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
}

/** One page. All pages show the state at the first one's version; a 410 says that it is too long ago. */
function listObjects(store: Store, { target, query, representation }: ResourceRequest): object {
  const given = query.get("continue") ?? "";
  const token = Buffer.from(given, "base64url").toString("utf8");
  const [, resourceVersion = store.version, after = ""] = /^(\d+) (.*)$/.exec(token) ?? [];
  if (given !== "" && after === "") throw badRequest("continue key is not valid");
  const matching = store.listAt(target.kind.key, resourceVersion).filter(matcherFor(target, query));
  const left = matching.filter((object) => placeOf(object) > after);
  const page = left.slice(0, numberIn(query, "limit") || left.length);
  const [last, remainingItemCount] = [page.at(-1), left.length - page.length];
  if (last === undefined || remainingItemCount === 0) return representation.list(page, { resourceVersion });
  const next = Buffer.from(`${resourceVersion} ${placeOf(last)}`).toString("base64url");
  return representation.list(page, { resourceVersion, continue: next, remainingItemCount });
}

/** A custom object must say what it is; a built-in one need not. */
function typed(kind: Kind, sent: KubeObject): KubeObject {
  if (kind.schema === undefined) return sent;
  if (sent["kind"] === undefined)
    throw badRequest(`the object provided is unrecognized (must be of type ${kind.kind}): Object 'Kind' is missing`);
  const { apiVersion = "" } = sent;
  if (apiVersion !== kind.apiVersion)
    throw badRequest(
      `the API version in the data (${String(apiVersion)}) does not match the expected API version (${kind.apiVersion})`,
    );
  return sent;
}

/** A PUT of what several writers share must say which version it replaces. */
function versioned(kind: Kind, sent: KubeObject): KubeObject {
  const shared = (hasGeneration(kind) && kind.kind !== "Pod") || kind.kind === "Lease";
  if (shared && sent.metadata.resourceVersion === "")
    throw unprocessable("metadata.resourceVersion: Invalid value: 0x0: must be specified for an update");
  return sent;
}

function deleteOne(store: Store, request: ResourceRequest, held: KubeObject): object {
  const { target, contentType, body, query, representation } = request;
  const parsed = deleteOptions.safeParse(decodeBody(contentType, body) ?? {});
  if (!parsed.success) throw badRequest(`the DeleteOptions are not valid: ${parsed.error.message}`);
  const { kind, namespace, name } = target;
  const dryRun = [...parsed.data.dryRun, query.get("dryRun") ?? ""];
  const gracePeriodSeconds = numberIn(query, "gracePeriodSeconds") ?? parsed.data.gracePeriodSeconds;
  const propagationPolicy = query.get("propagationPolicy") ?? parsed.data.propagationPolicy;
  const state = deleteObject(store, kind, held, { ...parsed.data, dryRun, gracePeriodSeconds, propagationPolicy });
  if (store.get(kind.key, namespace, name) !== undefined || kind.key === "pods") return representation.one(state);
  return { ...success, details: { name, group: kind.group, kind: kind.plural, uid: held.metadata.uid } };
}

/** Puts a Pod on a node, as a scheduler does. */
function bindPod(store: Store, target: Target, binding: KubeObject): object {
  const pod = findObject(store, target);
  if (binding.metadata.name !== target.name) throw badRequest("name in URL does not match name in Binding object");
  const { nodeName: taken, ...spec } = objectAt(pod, "spec");
  const nodeName = objectAt(binding, "target")["name"];
  if (typeof nodeName !== "string" || nodeName === "") throw badRequest("target.name: Required value");
  if (pod.metadata.deletionTimestamp !== undefined || taken !== undefined)
    throw conflict(target.kind, target.name, "the pod is being deleted or already assigned to a node");
  const conditions = [{ type: "PodScheduled", status: "True", lastTransitionTime: timestamp(store) }];
  const status = { ...objectAt(pod, "status"), conditions };
  store.write(target.kind.key, { ...pod, spec: { ...spec, nodeName }, status });
  return success;
}
