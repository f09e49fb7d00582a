import { Environment, type ParseResult } from "@marcbachmann/cel-js";
import { z } from "zod";
import type { FieldError } from "../kubernetes-objects/api-error.ts";
import { isObject, type JsonObject, objectAt } from "../kubernetes-objects/kube-object.ts";

const text = z.string().optional();
const rule = z.strictObject({ rule: z.string(), message: text, reason: text, fieldPath: text });
const rulesOf = z.looseObject({
  "x-kubernetes-validations": z.array(rule).default([]),
  "x-kubernetes-list-map-keys": z.array(z.string()).optional(),
});

const environment = new Environment({ unlistedVariablesAreDyn: true, homogeneousAggregateLiterals: false })
  .registerVariable("self", "dyn")
  .registerVariable("oldSelf", "dyn");
const programs = new Map<string, ParseResult>();

function program(source: string): ParseResult {
  const known = programs.get(source) ?? environment.parse(source);
  programs.set(source, known);
  return known;
}

/** Throws when a rule in the schema is not CEL, or has what is not supported here (messageExpression, optionalOldSelf). */
export function compileRules(node: unknown): void {
  if (!isObject(node)) return;
  for (const { rule: source } of rulesOf.parse(node)["x-kubernetes-validations"]) program(source);
  for (const child of Object.values(objectAt(node, "properties"))) compileRules(child);
  compileRules(node["items"]);
  compileRules(node["additionalProperties"]);
}

/** What tells the items of a list-map apart. */
export function listKey(keys: string[], item: unknown): string {
  return JSON.stringify(keys.map((key) => (isObject(item) ? item[key] : undefined)));
}

/**
 * Runs the rules of a schema over a value, from the root down. A rule that names oldSelf is about a change: it is passed
 * over where the store (`old`) holds nothing, and so are the items of a list that is no list-map.
 */
export function ruleErrors(node: JsonObject, value: unknown, old: unknown, path = ""): FieldError[] {
  const { "x-kubernetes-validations": rules, "x-kubernetes-list-map-keys": keys } = rulesOf.parse(node);
  // The real server shows what is wrong only where it is short.
  const shown = typeof value === "object" ? "" : `${JSON.stringify(value)}: `;
  const about = rules.filter((each) => old !== undefined || !/\boldSelf\b/.test(each.rule));
  const errors = about.flatMap(
    ({ rule: source, message, reason = "FieldValueInvalid", fieldPath = "" }): FieldError[] => {
      const why = broken(source, { self: toCel(node, value), oldSelf: toCel(node, old) }, message);
      const field = `${path}${fieldPath}`.replace(/^\./, "");
      return why === undefined ? [] : [{ reason, field, message: `Invalid value: ${shown}${why}` }];
    },
  );
  if (Array.isArray(value)) {
    const past = (item: unknown): unknown =>
      keys && Array.isArray(old) ? old.find((one) => listKey(keys, one) === listKey(keys, item)) : undefined;
    const items = objectAt(node, "items");
    return [...errors, ...value.flatMap((item, index) => ruleErrors(items, item, past(item), `${path}[${index}]`))];
  }
  const children = isObject(value) ? Object.entries(value) : [];
  const at = (key: string): string => (path === "" ? key : `${path}.${key}`);
  const before = isObject(old) ? old : {};
  return [
    ...errors,
    ...children.flatMap(([key, child]) => ruleErrors(childNode(node, key), child, before[key], at(key))),
  ];
}

/** Why a rule does not hold; undefined when it does. */
function broken(source: string, context: JsonObject, message = `failed rule: ${source}`): string | undefined {
  try {
    return program(source)(context) === true ? undefined : message;
  } catch (error) {
    return `rule evaluation error: ${error instanceof Error ? error.message.split("\n")[0] : "unknown"}`;
  }
}

function childNode(node: JsonObject, key: string): JsonObject {
  const properties = objectAt(node, "properties");
  return Object.hasOwn(properties, key) ? objectAt(properties, key) : objectAt(node, "additionalProperties");
}

/** CEL tells integers (BigInt here) from doubles and times from strings; JSON does not, so the schema decides. */
function toCel(node: JsonObject, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => toCel(objectAt(node, "items"), item));
  if (isObject(value))
    return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, toCel(childNode(node, key), child)]));
  if (typeof value === "number" && node["type"] !== "number" && Number.isInteger(value)) return BigInt(value);
  return typeof value === "string" && node["format"] === "date-time" ? new Date(value) : value;
}
