import { z } from "zod";
import { ApiError, badRequest } from "./api-error.ts";
import { decodeProtobuf } from "./protobuf.ts";
import { type SentObject, sentObject } from "./stored-object.ts";

/** The JSON value in a request body, undefined for an empty one. Throws 400 for garbage and 415 for another format. */
export function decodeBody(contentType: string, body: Buffer): unknown {
  if (body.length === 0) return undefined;
  try {
    // What the typed clients inside kubectl send (create namespace, secret, configmap).
    if (contentType === "application/vnd.kubernetes.protobuf") return decodeProtobuf(body);
    if (contentType === "" || contentType.endsWith("json")) return JSON.parse(body.toString("utf8"));
  } catch (error) {
    throw badRequest(`the body of the request cannot be read: ${error instanceof Error ? error.message : "garbage"}`);
  }
  throw unsupported("application/json, application/vnd.kubernetes.protobuf");
}

export function unsupported(accepted: string): ApiError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted}`;
  return new ApiError(415, "UnsupportedMediaType", message);
}

/** Throws a 400 that names the first thing that makes it no Kubernetes object. */
export function parseObject(value: unknown): SentObject {
  return parseWith(sentObject, value);
}

export function parseWith<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw badRequest(`the body of the request is not valid: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}`);
}
