import { Environment, type ParseResult } from "@marcbachmann/cel-js";
import { type FieldError } from "./api-error.ts";
import { isObject } from "./json.ts";
import { childPath, type Rule, type Schema, schemaAt } from "./schema.ts";
import { identityOf } from "./validation.ts";

const environment = new Environment({
  unlistedVariablesAreDyn: true,
  enableOptionalTypes: true,
  homogeneousAggregateLiterals: false,
})
  .registerVariable("self", "dyn")
  .registerVariable("oldSelf", "dyn");

const compiled = new Map<string, ParseResult>();

/** Parses a rule once. Throws the library's error when it is not CEL. */
export function compileRule(source: string): ParseResult {
  const known = compiled.get(source) ?? environment.parse(source);
  compiled.set(source, known);
  return known;
}

/**
 * Runs the rules of a schema over a valid value, from the root down. `old` is what the store holds: a rule that names
 * oldSelf is skipped where there is none (a transition rule), as in the real server.
 */
export function ruleErrors(schema: Schema, value: unknown, old: unknown, path = ""): FieldError[] {
  if (value === undefined || value === null) return [];
  const rules = schema["x-kubernetes-validations"] ?? [];
  const errors = rules.flatMap((rule) => runRule(rule, schema, value, old, path));
  if (Array.isArray(value) && schema.items !== undefined) {
    const items = schema.items;
    const previous = Array.isArray(old) ? old : [];
    for (const [index, item] of value.entries())
      errors.push(...ruleErrors(items, item, counterpart(schema, item, previous), `${path}[${index}]`));
  } else if (isObject(value)) {
    for (const [key, child] of Object.entries(value)) {
      const childSchema = schemaAt(schema, key);
      const before = isObject(old) ? old[key] : undefined;
      if (childSchema !== undefined) errors.push(...ruleErrors(childSchema, child, before, childPath(path, key)));
    }
  }
  return errors;
}

/** The old item that a list-map item continues. Items of other lists have no past. */
function counterpart(schema: Schema, item: unknown, previous: unknown[]): unknown {
  if (schema["x-kubernetes-list-type"] !== "map") return undefined;
  const identity = identityOf(schema, item);
  return previous.find((candidate) => identityOf(schema, candidate) === identity);
}

function runRule(rule: Rule, schema: Schema, value: unknown, old: unknown, path: string): FieldError[] {
  if (/\boldSelf\b/.test(rule.rule) && old === undefined) return [];
  const context = { self: toCel(schema, value), oldSelf: toCel(schema, old) };
  const type = `"${schema.type ?? "string"}"`;
  const field = rule.fieldPath === undefined ? path : `${path}${rule.fieldPath}`.replace(/^\./, "");
  const fail = (why: string): FieldError[] => [
    { reason: rule.reason ?? "FieldValueInvalid", field, message: `Invalid value: ${type}: ${why}` },
  ];
  try {
    const result: unknown = compileRule(rule.rule)(context);
    if (result === true) return [];
    const message: unknown =
      rule.messageExpression === undefined ? rule.message : compileRule(rule.messageExpression)(context);
    return fail(typeof message === "string" ? message : `failed rule: ${rule.rule}`);
  } catch (error) {
    const reason = error instanceof Error ? error.message.split("\n")[0] : String(error);
    return fail(`rule evaluation error: ${reason}`);
  }
}

/** CEL tells integers (BigInt here) from doubles and times from strings; JSON does not, so the schema decides. */
function toCel(schema: Schema | undefined, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => toCel(schema?.items, item));
  if (isObject(value)) {
    const at = (key: string): Schema | undefined => (schema === undefined ? undefined : schemaAt(schema, key));
    return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, toCel(at(key), child)]));
  }
  if (typeof value === "number" && schema?.type !== "number" && Number.isInteger(value)) return BigInt(value);
  if (typeof value === "string" && schema?.format === "date-time") return new Date(value);
  return value;
}
