import { z } from "zod";

const rule = z.looseObject({
  rule: z.string(),
  message: z.string().optional(),
  messageExpression: z.string().optional(),
  reason: z.string().optional(),
  fieldPath: z.string().optional(),
  optionalOldSelf: z.boolean().optional(),
});
export type Rule = z.infer<typeof rule>;

/** A structural schema: what a CustomResourceDefinition may say about a value, as far as it is enforced here. */
export const schema = z.looseObject({
  type: z.enum(["object", "array", "string", "integer", "number", "boolean"]).optional(),
  description: z.string().optional(),
  format: z.string().optional(),
  nullable: z.boolean().optional(),
  default: z.unknown().optional(),
  required: z.array(z.string()).optional(),
  enum: z.array(z.unknown()).optional(),
  pattern: z.string().optional(),
  minLength: z.number().optional(),
  maxLength: z.number().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  exclusiveMinimum: z.boolean().optional(),
  exclusiveMaximum: z.boolean().optional(),
  minItems: z.number().optional(),
  maxItems: z.number().optional(),
  minProperties: z.number().optional(),
  maxProperties: z.number().optional(),
  "x-kubernetes-preserve-unknown-fields": z.boolean().optional(),
  "x-kubernetes-int-or-string": z.boolean().optional(),
  "x-kubernetes-list-type": z.enum(["atomic", "set", "map"]).optional(),
  "x-kubernetes-list-map-keys": z.array(z.string()).optional(),
  "x-kubernetes-validations": z.array(rule).optional(),
  get properties() {
    return z.record(z.string(), schema).optional();
  },
  get items() {
    return schema.optional();
  },
  get additionalProperties() {
    return z.union([z.boolean(), schema]).optional();
  },
});
export type Schema = z.infer<typeof schema>;

/** The schema of the value at `key` of an object; undefined where any value may stand or the key is unknown. */
export function schemaAt(parent: Schema, key: string): Schema | undefined {
  const named = Object.hasOwn(parent.properties ?? {}, key) ? parent.properties?.[key] : undefined;
  if (named !== undefined) return named;
  return typeof parent.additionalProperties === "object" ? parent.additionalProperties : undefined;
}

export function childPath(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}
