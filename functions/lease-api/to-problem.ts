import { hasZodFastifySchemaValidationErrors } from "@fastify/type-provider-zod";
import { z } from "zod";
import { Failure } from "#shared/errors/failure.ts";
import { Problem, type ProblemCode } from "./problems.ts";

/** What Fastify's own errors mean; those that are not named say by their status whose mistake it is. */
const byFastifyCode: Readonly<Record<string, ProblemCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: "body-too-large",
  FST_ERR_CTP_INVALID_MEDIA_TYPE: "unsupported-media-type",
  FST_ERR_MAX_PARAM_LENGTH: "uri-too-long",
};

const unknownKeys = z.object({ keys: z.array(z.string()) });

/**
 * Gives any error that a request ended with its answer. What is not known is `internal`, and the answer says nothing
 * of it: the log does.
 */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof Failure && error.code === "RedisUnavailable") {
    return new Problem("redis-unavailable", { retryAfterSeconds: 1 });
  }
  if (error instanceof Failure && error.code === "SearchTooLong") {
    return new Problem("search-too-long", { retryAfterSeconds: 1 });
  }
  if (hasZodFastifySchemaValidationErrors(error)) return invalidRequest(error.validation);
  const known = z.object({ code: z.string(), statusCode: z.number(), message: z.string() }).safeParse(error);
  if (!known.success || known.data.statusCode >= 500) return new Problem("internal");
  return new Problem(byFastifyCode[known.data.code] ?? "malformed-request", { detail: known.data.message });
}

interface Issue {
  instancePath: string;
  message?: string;
  params: Record<string, unknown>;
}

/** One line per bad field; a field that is not known is named itself, not the object it was found in. */
function invalidRequest(issues: readonly Issue[]): Problem {
  const errors = issues.flatMap(({ instancePath, message = "is not valid", params }) => {
    const path = instancePath.split("/").filter((part) => part !== "");
    const unknown = unknownKeys.safeParse(params);
    if (!unknown.success) return [{ field: path.join(".") || "the body", message }];
    return unknown.data.keys.map((key) => ({ field: [...path, key].join("."), message: "unknown field" }));
  });
  // A field's name may be the client's word: half a character in it would make the answer unreadable for some.
  for (const error of errors) error.field = error.field.toWellFormed();
  const detail = errors.map((error) => `${error.field}: ${error.message}`).join("; ");
  return new Problem("invalid-request", { detail, extensions: { errors } });
}
