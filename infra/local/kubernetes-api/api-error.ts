import type { Kind } from "./kind.ts";
import { resourceName } from "./kind.ts";

/** One thing that is wrong with one field; `message` starts with what is wrong ("Invalid value: ..."). */
export interface FieldError {
  reason: string;
  message: string;
  field: string;
}

export interface StatusDetails {
  name?: string | undefined;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: FieldError[];
}

/** A refusal that a client gets as a Status object with this HTTP code and reason. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: number;
  readonly reason: string;
  readonly details: StatusDetails | undefined;

  constructor(code: number, reason: string, message: string, details?: StatusDetails) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.details = details;
  }

  toStatus(): object {
    const { code, reason, message, details } = this;
    return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, details, code };
  }
}

export function badRequest(message: string): ApiError {
  return new ApiError(400, "BadRequest", message);
}

export function unknownPath(): ApiError {
  return new ApiError(404, "NotFound", "the server could not find the requested resource");
}

export function notFound(kind: Kind, name: string): ApiError {
  const details = { name, group: kind.group, kind: kind.plural };
  return new ApiError(404, "NotFound", `${resourceName(kind)} "${name}" not found`, details);
}

export function expired(message: string): ApiError {
  return new ApiError(410, "Expired", message);
}

export function conflict(kind: Kind, name: string, why: string): ApiError {
  const message = `Operation cannot be fulfilled on ${resourceName(kind)} "${name}": ${why}`;
  return new ApiError(409, "Conflict", message, { name, group: kind.group, kind: kind.plural });
}

/** The 422 that lists every wrong field, as kubectl shows it. */
export function invalid(kind: Kind, name: string | undefined, causes: FieldError[]): ApiError {
  const list = causes.map((cause) => `${cause.field}: ${cause.message}`).join(", ");
  const what = kind.group === "" ? kind.kind : `${kind.kind}.${kind.group}`;
  const message = `${what} "${name ?? ""}" is invalid: ${causes.length > 1 ? `[${list}]` : list}`;
  return new ApiError(422, "Invalid", message, { name, group: kind.group, kind: kind.kind, causes });
}

/** A cause of an `invalid` answer about one field's value. */
export function invalidValue(field: string, value: unknown, why: string): FieldError {
  return { reason: "FieldValueInvalid", field, message: `Invalid value: ${JSON.stringify(value)}: ${why}` };
}
