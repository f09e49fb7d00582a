import { JSONPath } from "jsonpath-plus";
import { z } from "zod";
import { ApiError } from "./api-error.ts";
import { compileRule } from "./cel-rules.ts";
import { ageColumn } from "./core-kinds.ts";
import { coreSchema } from "./core-schemas.ts";
import type { Column, Kind } from "./kind.ts";
import { type Schema, schema } from "./schema.ts";
import type { SentObject } from "./stored-object.ts";

const columnDefinition = z.looseObject({
  name: z.string(),
  type: z.string(),
  jsonPath: z.string(),
  description: z.string().default(""),
  priority: z.number().default(0),
});

const definition = z.looseObject({
  group: z.string(),
  scope: z.enum(["Namespaced", "Cluster"]),
  names: z.looseObject({
    kind: z.string(),
    plural: z.string(),
    singular: z.string().optional(),
    shortNames: z.array(z.string()).default([]),
    categories: z.array(z.string()).default([]),
  }),
  versions: z.array(
    z.looseObject({
      name: z.string(),
      served: z.boolean(),
      schema: z.looseObject({ openAPIV3Schema: schema }),
      subresources: z.looseObject({ status: z.looseObject({}).optional() }).default({}),
      additionalPrinterColumns: z.array(columnDefinition).optional(),
      selectableFields: z.array(z.looseObject({ jsonPath: z.string() })).default([]),
    }),
  ),
});

/** The kinds that a CustomResourceDefinition serves. Throws a 422 that names what cannot be served. */
export function customKinds(crd: SentObject): Kind[] {
  const parsed = definition.safeParse(crd["spec"]);
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => `spec.${issue.path.join(".")}: ${issue.message}`).join(", ");
    throw new ApiError(422, "Invalid", `CustomResourceDefinition "${crd.metadata.name ?? ""}" is invalid: ${problems}`);
  }
  const { group, scope, names, versions } = parsed.data;
  return versions
    .filter((version) => version.served)
    .map((version) => {
      const root = version.schema.openAPIV3Schema;
      checkExpressions(root, "spec.versions.schema.openAPIV3Schema");
      return {
        group,
        version: version.name,
        kind: names.kind,
        plural: names.plural,
        singular: names.singular ?? names.kind.toLowerCase(),
        shortNames: names.shortNames,
        categories: names.categories,
        namespaced: scope === "Namespaced",
        hasStatus: version.subresources.status !== undefined,
        schema: withCommonFields(root),
        columns: version.additionalPrinterColumns?.map(toColumn) ?? [ageColumn],
        custom: true,
        storeKey: `${group}/${names.plural}`,
        selectableFields: version.selectableFields.map((field) => field.jsonPath.slice(1)),
        renamed: [],
      };
    });
}

function withCommonFields(root: Schema): Schema {
  const metadata = coreSchema("V1ObjectMeta");
  const common: Record<string, Schema> = { apiVersion: { type: "string" }, kind: { type: "string" } };
  return { ...root, properties: { ...common, ...root.properties, metadata } };
}

function toColumn({ name, type, jsonPath, description, priority }: z.infer<typeof columnDefinition>): Column {
  const cell: Column["cell"] = (object) => {
    const found: unknown = JSONPath({ path: `$${jsonPath}`, json: object });
    return Array.isArray(found) && found.length > 1 ? found.join(",") : Array.isArray(found) ? found[0] : undefined;
  };
  return { name, type, description, priority, cell };
}

/** A pattern or rule that does not compile would fail every later write: refuse the definition instead. */
function checkExpressions(node: Schema, path: string): void {
  try {
    if (node.pattern !== undefined) new RegExp(node.pattern, "u");
    for (const rule of node["x-kubernetes-validations"] ?? []) {
      if (rule["optionalOldSelf"] !== undefined) throw new Error("optionalOldSelf is not supported by this server");
      compileRule(rule.rule);
      if (rule.messageExpression !== undefined) compileRule(rule.messageExpression);
    }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ApiError(422, "Invalid", `${path}: Invalid value: ${why}`);
  }
  for (const [key, child] of Object.entries(node.properties ?? {})) checkExpressions(child, `${path}.${key}`);
  if (node.items !== undefined) checkExpressions(node.items, `${path}.items`);
  if (typeof node.additionalProperties === "object") checkExpressions(node.additionalProperties, `${path}.*`);
}
