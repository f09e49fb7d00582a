import { z } from "zod";
import { ApiError, badRequest } from "./api-error.ts";
import type { ApiState, WriteOptions } from "./api-state.ts";
import { createObject, type Written } from "./create-object.ts";
import { deleteObject, deleteOptions } from "./delete-object.ts";
import { listObjects, matcherFor } from "./list.ts";
import { patched } from "./patch.ts";
import { bindPod } from "./pod-binding.ts";
import { type Representation } from "./representation.ts";
import { findObject, type Query, type Target } from "./request.ts";
import { decodeBody, parseObject, parseWith } from "./request-body.ts";
import { toShown } from "./shown-form.ts";
import type { StoredObject } from "./stored-object.ts";
import { updateObject } from "./update-object.ts";

/** One request for a resource, except a watch. */
export interface ResourceRequest {
  method: string;
  target: Target;
  query: Query;
  representation: Representation;
  contentType: string;
  body: Buffer;
}

export interface Answer {
  code: number;
  body: object;
  warnings: string[];
}

/** Carries out a request. Throws an ApiError for every refusal. */
export function answer(api: ApiState, request: ResourceRequest): Answer {
  const { method, target, query, representation } = request;
  const options: WriteOptions = { dryRun: query.dryRun === "All", fieldValidation: query.fieldValidation };
  const written = (code: number, { object, warnings }: Written): Answer => ({
    ...{ code, body: representation.one(object), warnings },
  });
  const sent = (): ReturnType<typeof parseObject> => parseObject(decodeBody(request.contentType, request.body));
  if (target.subresource === "binding" && method === "POST") {
    bindPod(api, target, sent());
    return { code: 201, body: success(), warnings: [] };
  }
  if (target.name === undefined) {
    if (method === "GET") return ok(listObjects(api, target, query, representation));
    if (method === "POST") return written(201, createObject(api, target.kind, target.namespace, sent(), options));
    if (method === "DELETE") return deleteMany(api, request);
  } else if (target.subresource !== "binding") {
    const held = findObject(api, target);
    const update = { ...options, statusOnly: target.subresource === "status" };
    if (method === "GET") return ok(representation.one(held));
    if (method === "PUT") return written(200, updateObject(api, target.kind, held, versioned(request, sent()), update));
    if (method === "PATCH") {
      const patch = decodeBody("application/json", request.body);
      const result = patched(target.kind, toShown(target.kind, held), request.contentType, patch);
      return written(200, updateObject(api, target.kind, held, parseObject(result), update));
    }
    if (method === "DELETE" && target.subresource === undefined) return deleteOne(api, request, held);
  }
  throw new ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
}

function ok(body: object): Answer {
  return { code: 200, body, warnings: [] };
}

function success(): object {
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" };
}

/** A PUT of a kind that several writers share must say which version it replaces. */
function versioned({ target: { kind } }: ResourceRequest, sent: ReturnType<typeof parseObject>): typeof sent {
  if ((!kind.custom && kind.kind !== "Lease") || sent.metadata.resourceVersion) return sent;
  const message = `${kind.kind} "${sent.metadata.name ?? ""}" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`;
  throw new ApiError(422, "Invalid", message);
}

function deleteOne(api: ApiState, request: ResourceRequest, held: StoredObject): Answer {
  const { kind } = request.target;
  const state = deleteObject(api, kind, held, optionsOf(request));
  const gone = api.store.get(kind.storeKey, held.metadata.namespace, held.metadata.name) === undefined;
  if (!gone || kind.kind === "Pod") return ok(request.representation.one(state));
  const details = { name: held.metadata.name, group: kind.group, kind: kind.plural, uid: held.metadata.uid };
  return ok({ ...success(), details });
}

function deleteMany(api: ApiState, request: ResourceRequest): Answer {
  const { kind } = request.target;
  const objects = api.store.list(kind.storeKey).filter(matcherFor(request.target, request.query));
  const states = objects.map((object) => deleteObject(api, kind, object, optionsOf(request)));
  return ok(request.representation.list(states, { resourceVersion: `${api.store.version}` }));
}

function optionsOf({ contentType, body, query }: ResourceRequest): z.infer<typeof deleteOptions> {
  const sent = parseWith(deleteOptions, decodeBody(contentType, body) ?? {});
  const { dryRun, gracePeriodSeconds, propagationPolicy } = query;
  if (sent.dryRun !== undefined && sent.dryRun.some((one) => one !== "All")) throw badRequest("dryRun must be All");
  return {
    ...sent,
    ...(dryRun === undefined ? {} : { dryRun: [dryRun] }),
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(propagationPolicy === undefined ? {} : { propagationPolicy }),
  };
}
