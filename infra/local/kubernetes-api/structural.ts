import { isObject } from "./json.ts";
import { childPath, type Schema, schemaAt } from "./schema.ts";

/**
 * Brings a value into the shape of its schema, in place, and returns the paths of the unknown fields it removed. Drops
 * nulls where null is not a value and sets defaults, in the real server's order: a null field gets its default too.
 */
export function shape(schema: Schema, value: unknown, path = ""): string[] {
  if (Array.isArray(value)) {
    const items = schema.items;
    return items === undefined ? [] : value.flatMap((item, index) => shape(items, item, `${path}[${index}]`));
  }
  if (!isObject(value)) return [];
  for (const [key, child] of Object.entries(schema.properties ?? {})) {
    if (value[key] === null && child.nullable !== true) delete value[key];
    if (value[key] === undefined && child.default !== undefined) value[key] = structuredClone(child.default);
  }
  const open = schema.additionalProperties !== undefined || schema["x-kubernetes-preserve-unknown-fields"] === true;
  const unknown: string[] = [];
  for (const key of Object.keys(value)) {
    const child = schemaAt(schema, key);
    if (child !== undefined) unknown.push(...shape(child, value[key], childPath(path, key)));
    else if (!open) {
      unknown.push(childPath(path, key));
      delete value[key];
    }
  }
  return unknown;
}
