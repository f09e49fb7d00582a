import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import formats from "ajv-formats";
import { type FieldError, invalidValue } from "../kubernetes-objects/api-error.ts";
import { isObject, type JsonObject, type KubeObject, objectAt } from "../kubernetes-objects/kube-object.ts";
import { compileRules, listKey, ruleErrors } from "./cel-rules.ts";

const ajv = new Ajv({ allErrors: true, strict: false, useDefaults: true, verbose: true, logger: false });
formats.default(ajv);
ajv.addKeyword({
  keyword: "x-kubernetes-list-map-keys",
  validate: (keys: string[], list: unknown[]) => new Set(list.map((item) => listKey(keys, item))).size === list.length,
});

// The real server runs no rule over a value with one of these errors: rules rely on types and presence.
const blocking = ["FieldValueTypeInvalid", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany"];

/**
 * The schema of a custom kind: a structural schema with CEL rules. Null is never a value here, `nullable` or not, and
 * exclusive bounds are not known; otherwise it decides as the real server does, and says so in its words.
 */
export class CustomSchema {
  /** As the CustomResourceDefinition has it, with the fields that every object has. */
  readonly openApi: JsonObject;
  readonly #validate: ValidateFunction;

  /** Throws when it is no schema, or holds a pattern or a rule that does not compile. */
  constructor(root: JsonObject) {
    const metadata = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
    const common = { apiVersion: { type: "string" }, kind: { type: "string" }, metadata };
    this.openApi = { ...root, properties: { ...objectAt(root, "properties"), ...common } };
    this.#validate = ajv.compile(closed(this.openApi));
    compileRules(root);
  }

  /** Sets defaults and removes nulls and unknown fields, in place. Returns the unknown fields, and what is wrong. */
  admit(object: KubeObject, old: KubeObject | undefined): { unknown: string[]; errors: FieldError[] } {
    dropNulls(object);
    this.#validate(object);
    const found = this.#validate.errors ?? [];
    const unknown = found.filter(({ keyword }) => keyword === "additionalProperties").map(removeUnknown);
    const errors = found.filter(({ keyword }) => keyword !== "additionalProperties").map(toFieldError);
    if (!errors.some((error) => blocking.includes(error.reason)))
      return { unknown, errors: [...errors, ...ruleErrors(this.openApi, object, old)] };
    const why = "some validation rules were not checked because the object was invalid";
    const note = invalidValue("<nil>", null, `${why}; correct the existing errors to complete validation`);
    return { unknown, errors: [...errors, note] };
  }
}

/** The JSON schema that reports every field that a structural schema would prune. */
function closed(node: JsonObject): JsonObject {
  const { items, additionalProperties: rest, ...own } = node;
  const properties = Object.keys(objectAt(node, "properties"));
  const open = rest === true || node["x-kubernetes-preserve-unknown-fields"] === true || node["type"] !== "object";
  return {
    ...own,
    ...(node["x-kubernetes-int-or-string"] === true ? { type: ["integer", "string"] } : {}),
    ...(isObject(items) ? { items: closed(items) } : {}),
    properties: Object.fromEntries(properties.map((key) => [key, closed(objectAt(node["properties"], key))])),
    additionalProperties: isObject(rest) ? closed(rest) : open,
  };
}

function dropNulls(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const [key, child] of Object.entries(value)) {
    if (child === null && isObject(value)) delete value[key];
    else dropNulls(child);
  }
}

function removeUnknown({ params, data, instancePath }: ErrorObject<string, JsonObject>): string {
  const key = String(params["additionalProperty"]);
  if (isObject(data)) delete data[key];
  return fieldPath(`${instancePath}/${key}`);
}

const wanted: Record<string, string> = {
  minimum: "should be greater than or equal to %",
  maximum: "should be less than or equal to %",
  minLength: "should be at least % chars long",
  minItems: "should have at least % items",
  pattern: "should match '%'",
  format: "must be of type %",
};

function toFieldError({ keyword, instancePath, params, schema, data }: ErrorObject<string, JsonObject>): FieldError {
  const field = fieldPath(instancePath);
  const scalar = Number.isInteger(data) ? "integer" : typeof data;
  const found = Array.isArray(data) ? "array" : scalar;
  const type = `"${found}": ${field} in body must be of type ${String(schema)}: "${found}"`;
  const known = Array.isArray(schema) ? schema.map((one: unknown) => JSON.stringify(one)).join(", ") : "";
  const what = `${field} in body ${(wanted[keyword] ?? `breaks ${keyword} %`).replace("%", String(schema))}`;
  switch (keyword) {
    case "required":
      return {
        reason: "FieldValueRequired",
        field: fieldPath(`${instancePath}/${String(params["missingProperty"])}`),
        message: "Required value",
      };
    case "type":
      return { reason: "FieldValueTypeInvalid", field, message: `Invalid value: ${type}` };
    case "enum":
      return {
        reason: "FieldValueNotSupported",
        field,
        message: `Unsupported value: ${JSON.stringify(data)}: supported values: ${known}`,
      };
    case "maxLength":
      return { reason: "FieldValueTooLong", field, message: `Too long: may not be more than ${String(schema)} bytes` };
    case "maxItems":
      return { reason: "FieldValueTooMany", field, message: `Too many: must have at most ${String(schema)} items` };
    case "x-kubernetes-list-map-keys":
      return duplicate(field, Array.isArray(schema) ? schema.map(String) : [], Array.isArray(data) ? data : []);
    default:
      return invalidValue(field, data, what);
  }
}

/** The first item of a list-map whose keys an earlier one has. */
function duplicate(field: string, keys: string[], list: unknown[]): FieldError {
  const known = list.map((item) => listKey(keys, item));
  const index = known.findIndex((key, at) => known.indexOf(key) !== at);
  const item = list[index];
  const values = Object.fromEntries(keys.map((key) => [key, isObject(item) ? item[key] : undefined]));
  const message = `Duplicate value: ${JSON.stringify(values)}`;
  return { reason: "FieldValueDuplicate", field: `${field}[${index}]`, message };
}

/** `/spec/list/0/name` -> `spec.list[0].name`. */
function fieldPath(pointer: string): string {
  const steps = pointer.slice(1).replaceAll("~1", "/").replaceAll("~0", "~").split("/");
  return steps
    .map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`))
    .join("")
    .slice(1);
}
