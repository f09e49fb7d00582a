import { type FieldError, invalidValue } from "./api-error.ts";
import { isObject, type JsonObject } from "./json.ts";
import { childPath, type Schema, schemaAt } from "./schema.ts";

/** What is wrong with a value that has the right shape, in the words of the real server. */
export function validate(schema: Schema, value: unknown, path = ""): FieldError[] {
  if (!hasType(schema, value)) return [typeError(schema.type ?? "string", value, path)];
  const errors = enumErrors(schema, value, path);
  if (typeof value === "string") errors.push(...stringErrors(schema, value, path));
  else if (typeof value === "number") errors.push(...numberErrors(schema, value, path));
  else if (Array.isArray(value)) errors.push(...listErrors(schema, value, path));
  else if (isObject(value)) errors.push(...objectErrors(schema, value, path));
  return errors;
}

function hasType(schema: Schema, value: unknown): boolean {
  if (value === null && schema.nullable === true) return true;
  if (schema["x-kubernetes-int-or-string"] === true) return typeof value === "string" || Number.isInteger(value);
  if (schema.type === undefined) return true;
  if (schema.type === "integer") return Number.isInteger(value);
  if (schema.type === "array") return Array.isArray(value);
  if (schema.type === "object") return isObject(value);
  return typeof value === schema.type;
}

function typeError(wanted: string, value: unknown, path: string): FieldError {
  const found = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  const message = `Invalid value: "${found}": ${path} in body must be of type ${wanted}: "${found}"`;
  return { reason: "FieldValueTypeInvalid", field: path, message };
}

function enumErrors(schema: Schema, value: unknown, path: string): FieldError[] {
  if (schema.enum === undefined || schema.enum.includes(value)) return [];
  const known = schema.enum.map((one) => JSON.stringify(one)).join(", ");
  const message = `Unsupported value: ${JSON.stringify(value)}: supported values: ${known}`;
  return [{ reason: "FieldValueNotSupported", field: path, message }];
}

function stringErrors(schema: Schema, value: string, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const length = [...value].length;
  if (schema.maxLength !== undefined && length > schema.maxLength) {
    const message = `Too long: may not be more than ${schema.maxLength} bytes`;
    errors.push({ reason: "FieldValueTooLong", field: path, message });
  }
  if (schema.minLength !== undefined && length < schema.minLength)
    errors.push(invalidValue(path, value, `${path} in body should be at least ${schema.minLength} chars long`));
  if (schema.pattern !== undefined && !new RegExp(schema.pattern, "u").test(value))
    errors.push(invalidValue(path, value, `${path} in body should match '${schema.pattern}'`));
  if (schema.format === "date-time" && !isDateTime(value))
    errors.push(invalidValue(path, value, `${path} in body must be of type date-time: ${JSON.stringify(value)}`));
  return errors;
}

function isDateTime(value: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i.test(value) && !Number.isNaN(Date.parse(value));
}

function numberErrors(schema: Schema, value: number, path: string): FieldError[] {
  const { minimum, maximum } = schema;
  const errors: FieldError[] = [];
  if (minimum !== undefined && (schema.exclusiveMinimum === true ? value <= minimum : value < minimum)) {
    const bound = schema.exclusiveMinimum === true ? "greater than" : "greater than or equal to";
    errors.push(invalidValue(path, value, `${path} in body should be ${bound} ${minimum}`));
  }
  if (maximum !== undefined && (schema.exclusiveMaximum === true ? value >= maximum : value > maximum)) {
    const bound = schema.exclusiveMaximum === true ? "less than" : "less than or equal to";
    errors.push(invalidValue(path, value, `${path} in body should be ${bound} ${maximum}`));
  }
  return errors;
}

function listErrors(schema: Schema, value: unknown[], path: string): FieldError[] {
  const errors = sizeErrors(value.length, schema.minItems, schema.maxItems, "items", path);
  const seen = new Set<string>();
  for (const [index, item] of value.entries()) {
    const at = `${path}[${index}]`;
    const identity = identityOf(schema, item);
    if (identity !== undefined && seen.has(identity))
      errors.push({ reason: "FieldValueDuplicate", field: at, message: `Duplicate value: ${identity}` });
    if (identity !== undefined) seen.add(identity);
    if (schema.items !== undefined) errors.push(...validate(schema.items, item, at));
  }
  return errors;
}

/** What tells two items of a set or a list-map apart; undefined where a list may repeat itself. */
export function identityOf(schema: Schema, item: unknown): string | undefined {
  if (schema["x-kubernetes-list-type"] === "set") return JSON.stringify(item);
  if (schema["x-kubernetes-list-type"] !== "map" || !isObject(item)) return undefined;
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  return JSON.stringify(Object.fromEntries(keys.map((key) => [key, item[key]])));
}

function objectErrors(schema: Schema, value: JsonObject, path: string): FieldError[] {
  const keys = Object.keys(value);
  const errors = sizeErrors(keys.length, schema.minProperties, schema.maxProperties, "properties", path);
  for (const key of schema.required ?? [])
    if (value[key] === undefined)
      errors.push({ reason: "FieldValueRequired", field: childPath(path, key), message: "Required value" });
  for (const key of keys) {
    const child = schemaAt(schema, key);
    if (child !== undefined) errors.push(...validate(child, value[key], childPath(path, key)));
  }
  return errors;
}

function sizeErrors(
  size: number,
  least: number | undefined,
  most: number | undefined,
  what: string,
  path: string,
): FieldError[] {
  if (most !== undefined && size > most) {
    const message = `Too many: ${size}: must have at most ${most} items`;
    return [{ reason: "FieldValueTooMany", field: path, message }];
  }
  if (least === undefined || size >= least) return [];
  return [invalidValue(path, size, `${path} in body should have at least ${least} ${what}`)];
}
