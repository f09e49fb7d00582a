import type { Kind } from "../kubernetes-objects/kind.ts";

/** What is wrong with one field; `message` begins with the sort of error ("Invalid value: ..."). */
export interface FieldError {
  reason: string;
  message: string;
  field: string;
}

/** A refusal: the client gets a Status object with this HTTP code and reason. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: number;
  readonly reason: string;
  readonly details: object;

  constructor(code: number, reason: string, message: string, details = {}) {
    super(message);
    [this.code, this.reason, this.details] = [code, reason, details];
  }

  toStatus(): object {
    const { code, reason, message, details } = this;
    return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, details, code };
  }
}

export function badRequest(message: string): ApiError {
  return new ApiError(400, "BadRequest", message);
}

export function unprocessable(message: string): ApiError {
  return new ApiError(422, "Invalid", message);
}

/** The one refusal that is no Status: clients tell by it a kind that is not served from an object that is not there. */
export class UnknownPath extends ApiError {
  constructor() {
    super(404, "NotFound", "404 page not found");
  }
}

export function unknownPath(): ApiError {
  return new UnknownPath();
}

/** A refusal that is about one object, e.g. `proxies.crawl.example.com "a" not found`. */
export function refused(
  code: number,
  reason: string,
  kind: Kind,
  name: string,
  why: string,
  causes?: FieldError[],
): ApiError {
  const details = { name, group: kind.group, kind: kind.plural, ...(causes === undefined ? {} : { causes }) };
  return new ApiError(code, reason, `${kind.key} "${name}" ${why}`, details);
}

export function conflict({ key, group, plural }: Kind, name: string, why: string): ApiError {
  const message = `Operation cannot be fulfilled on ${key} "${name}": ${why}`;
  return new ApiError(409, "Conflict", message, { name, group, kind: plural });
}

/** The 422 that lists every wrong field; kubectl prints them one by one. */
export function invalid({ group, kind }: Kind, name: string, causes: FieldError[]): ApiError {
  const list = causes.map((cause) => `${cause.field}: ${cause.message}`).join(", ");
  const message = `${kind}.${group} "${name}" is invalid: ${causes.length > 1 ? `[${list}]` : list}`;
  return new ApiError(422, "Invalid", message, { name, group, kind, causes });
}

export function invalidValue(field: string, value: unknown, why: string): FieldError {
  return { reason: "FieldValueInvalid", field, message: `Invalid value: ${JSON.stringify(value)}: ${why}` };
}
