import { ApiException } from "@kubernetes/client-node";
import { z } from "zod";
import { Failure, type FailureClass, type FailureInit } from "#shared/errors/failure.ts";

/** What the API server says with a refusal. Anything may be missing: proxies on the way answer too. */
const status = z.object({
  kind: z.literal("Status"),
  reason: z.string().optional().catch(undefined),
  message: z.string().optional().catch(undefined),
  details: z
    .object({
      name: z.string().optional(),
      kind: z.string().optional(),
      retryAfterSeconds: z.number().optional(),
      causes: z
        .array(
          z.object({ field: z.string().optional(), message: z.string().optional(), reason: z.string().optional() }),
        )
        .optional(),
    })
    .optional()
    .catch(undefined),
});
type Status = z.infer<typeof status>;

type Verdict = Pick<FailureInit, "class" | "code"> & { message?: string };

const permanent = (code: string, message?: string): Verdict => verdict("Permanent", code, message);
const transient = (code: string, message?: string): Verdict => verdict("Transient", code, message);

function verdict(failureClass: FailureClass, code: string, message: string | undefined): Verdict {
  return { class: failureClass, code, ...(message === undefined ? {} : { message }) };
}

/** What the server answers when the `test` of a JSON patch fails: nothing in it says so but this sentence. */
const patchTestFailed = "the server rejected our request due to an error in our request";

function forbidden(body: Status | undefined): Verdict {
  const message = body?.message ?? "";
  if (message.includes("exceeded quota")) return verdict("QuotaExceeded", "QuotaExceeded", undefined);
  const terminating = body?.details?.causes?.some((cause) => cause.reason === "NamespaceTerminating") ?? false;
  if (terminating || message.includes("because it is being terminated")) return transient("NamespaceTerminating");
  return permanent("Forbidden");
}

/** Only a Status that names the object proves that the object is gone: a proxy, a missing CRD or API group say 404 too. */
function notFound(body: Status | undefined): Verdict {
  if (body?.reason !== "NotFound" || !body.details?.name) return transient("NotServed", "no such path on the server");
  if (body.details.kind === "namespaces") return transient("NamespaceNotFound");
  return verdict("NotFound", "NotFound", undefined);
}

/** The server repeats refused values, which may be a secret: only field and rule are kept. */
function invalid(body: Status | undefined): Verdict {
  const causes = body?.details?.causes ?? [];
  if (causes.length === 0 && body?.message?.startsWith(patchTestFailed)) {
    return transient("Conflict", "the object is not what it was when it was read");
  }
  const [first] = (body?.message ?? "").split(": ");
  const reasons = causes.map((cause) => `${cause.field ?? "?"}: ${withoutValue(cause.message ?? "")}`);
  return permanent("Invalid", [first, ...reasons].join("; "));
}

// An object or a list that breaks a rule is not repeated: the rule's message follows at once, with no colon after it.
const quoted =
  /\b(Invalid value|Unsupported value|Duplicate value|Not found): ("(?:[^"\\]|\\.)*"|\{.*\}|\[.*\]|[^:]*(?=:))/gs;

function withoutValue(message: string): string {
  return message.replace(quoted, "$1");
}

const byStatus: Record<number, (body: Status | undefined) => Verdict> = {
  400: () => permanent("BadRequest"),
  // Tokens rotate, and the next call reads the new one.
  401: () => transient("Unauthorized", "the API server does not accept our credentials"),
  403: forbidden,
  404: notFound,
  405: () => permanent("MethodNotAllowed"),
  409: (body) => transient(body?.reason === "AlreadyExists" ? "AlreadyExists" : "Conflict"),
  410: () => transient("Gone"),
  413: () => permanent("TooLarge"),
  415: () => permanent("UnsupportedMediaType"),
  422: invalid,
  429: () => transient("TooManyRequests"),
  503: () => transient("Unavailable"),
  504: () => transient("Timeout"),
};

const messageLimit = 1024;

/** A refusal, read into class and code. `retryAfterMs` comes from the header, else from the body. */
function refusal(error: ApiException<unknown>, op: string, effect: Effect): Failure {
  const body = parseStatus(error.body);
  const judged = (byStatus[error.code] ?? (() => transient(error.code >= 500 ? "ServerError" : "UnexpectedStatus")))(
    body,
  );
  const said = judged.message ?? body?.message ?? "no reason given";
  const retryAfterMs = retryAfter(error.headers["retry-after"], body);
  return new Failure({
    class: judged.class,
    code: judged.code,
    message: `${said} (${op}: HTTP ${error.code})`.slice(0, messageLimit),
    op,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    // Any server error may come after the write, e.g. when etcd took it but answered late.
    ambiguous: effect === "write" && error.code >= 500,
  });
}

/** Undefined where the body is not a Status, e.g. a proxy's page. */
function parseStatus(body: unknown): Status | undefined {
  if (typeof body !== "string") return status.safeParse(body).data;
  try {
    return status.safeParse(JSON.parse(body)).data;
  } catch {
    return undefined;
  }
}

function retryAfter(header: string | undefined, body: Status | undefined): number | undefined {
  const seconds = header === undefined ? Number.NaN : Number(header);
  if (Number.isFinite(seconds) && seconds >= 0) return seconds * 1000;
  const said = body?.details?.retryAfterSeconds;
  return said === undefined ? undefined : said * 1000;
}

/** Codes of a connection that was never made: nothing was sent, so nothing can have happened. */
const neverSent = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
]);

export type Effect = "read" | "write";

/**
 * Gives whatever a call to the API server threw a meaning; the only place that knows its status codes. A Failure stays
 * as it is. `op` is for people, e.g. `PATCH /apis/…`. A `write` whose answer was lost is `ambiguous`.
 */
export function classifyApiError(error: unknown, op: string, effect: Effect = "write"): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof ApiException) return refusal(error, op, effect);
  const { name, message, code } = describe(error);
  const kind = name === "TimeoutError" ? "Timeout" : name === "AbortError" ? "Aborted" : "Unreachable";
  return new Failure({
    class: "Transient",
    code: kind,
    message: `${message}${code === "" || message.includes(code) ? "" : ` ${code}`} (${op})`,
    op,
    ambiguous: effect === "write" && !neverSent.has(code),
    cause: error,
  });
}

/** Name, message and system code, looking through the `cause` that undici wraps around a socket's error. */
function describe(error: unknown): { name: string; message: string; code: string } {
  if (!(error instanceof Error)) return { name: "", message: String(error), code: "" };
  const inner = error.cause instanceof Error && error.message === "fetch failed" ? error.cause : error;
  const code = "code" in inner && typeof inner.code === "string" ? inner.code : "";
  return { name: error.name, message: inner.message || inner.name, code };
}
