import { badRequest, type FieldError, invalid } from "./api-error.ts";
import type { WriteOptions } from "./api-state.ts";
import { ruleErrors } from "./cel-rules.ts";
import type { Kind } from "./kind.ts";
import type { StoredObject } from "./stored-object.ts";
import { shape } from "./structural.ts";
import { validate } from "./validation.ts";

// The real server runs no rule over a value with one of these errors: a rule relies on types and presence.
const blocking = ["FieldValueTypeInvalid", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany"];

/**
 * Prunes `object` (in place), sets defaults and judges it; `old` is what it replaces. Returns warnings. Throws 400 for
 * unknown fields under Strict and for wrong types of a built-in kind, 422 for what the schema of a custom kind refuses.
 */
export function admit(
  kind: Kind,
  object: StoredObject,
  old: StoredObject | undefined,
  fieldValidation: WriteOptions["fieldValidation"],
): string[] {
  const unknown = shape(kind.schema, object).map((path) => `unknown field "${path}"`);
  const refused = `${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}`;
  if (unknown.length > 0 && fieldValidation === "Strict")
    throw badRequest(`${refused}: strict decoding error: ${unknown.join(", ")}`);
  const errors = validate(kind.schema, object);
  if (!kind.custom && errors.length > 0) throw badRequest(`${refused}: ${errors.map((e) => e.message).join(", ")}`);
  const all = kind.custom ? [...errors, ...judgeRules(kind, object, old, errors)] : errors;
  if (all.length > 0) throw invalid(kind, object.metadata.name, all);
  return fieldValidation === "Warn" ? unknown : [];
}

function judgeRules(kind: Kind, object: StoredObject, old: StoredObject | undefined, errors: FieldError[]) {
  if (!errors.some((error) => blocking.includes(error.reason))) return ruleErrors(kind.schema, object, old);
  const why =
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
  return [{ reason: "FieldValueInvalid", field: "<nil>", message: `Invalid value: null: ${why}` }];
}
