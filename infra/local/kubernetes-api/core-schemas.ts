import * as models from "@kubernetes/client-node";
import { z } from "zod";
import type { Schema } from "./schema.ts";

const attributes = z.array(z.object({ baseName: z.string(), type: z.string(), format: z.string() }));
const open: Schema = { "x-kubernetes-preserve-unknown-fields": true };
const known = new Map<string, Schema>();

/**
 * The schema of a built-in type, from the client library's generated model classes (e.g. `V1Pod`): names and types of
 * fields, no descriptions, no limits. An unknown or recursive type accepts anything.
 */
export function coreSchema(className: string): Schema {
  const found = known.get(className);
  if (found !== undefined) return found;
  known.set(className, { type: "object", ...open }); // what a type inside itself gets
  const model: unknown = Reflect.get(models, className);
  if (typeof model !== "function") return { type: "object", ...open };
  const typeMap: unknown = Reflect.get(model, "attributeTypeMap");
  const properties: Record<string, Schema> = {};
  for (const { baseName, type, format } of attributes.parse(typeMap))
    properties[baseName] = isQuantities(baseName, type)
      ? { type: "object", additionalProperties: { "x-kubernetes-int-or-string": true } }
      : typeSchema(type, format);
  const schema: Schema = { type: "object", properties };
  known.set(className, schema);
  return schema;
}

/** Quantities are strings in the model, but `cpu: 1` is allowed in YAML. */
function isQuantities(name: string, type: string): boolean {
  return type.startsWith("{") && (name === "limits" || name === "requests");
}

function typeSchema(type: string, format: string): Schema {
  const list = /^Array<(.*)>$/.exec(type)?.[1];
  if (list !== undefined) return { type: "array", items: typeSchema(list, "") };
  const map = /^\{ \[key: string\]: (.*); \}$/.exec(type)?.[1];
  if (map !== undefined) return { type: "object", additionalProperties: typeSchema(map, "") };
  if (type === "string") return format === "byte" ? { type, format } : { type };
  if (type === "boolean") return { type };
  if (type === "number") return { type: format.startsWith("int") ? "integer" : "number" };
  if (type === "Date" || type === "V1MicroTime") return { type: "string", format: "date-time" };
  if (type === "IntOrString") return { "x-kubernetes-int-or-string": true };
  return type === "any" || type === "object" ? open : coreSchema(type);
}
