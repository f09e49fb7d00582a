import { z } from "zod";
import { unprocessable } from "../kubernetes-objects/api-error.ts";
import { CustomSchema } from "../kubernetes-objects/custom-schema.ts";
import { type Column, definitionsKey, type Kind } from "../kubernetes-objects/kind.ts";
import type { KubeObject } from "../kubernetes-objects/kube-object.ts";
import type { Store } from "./store.ts";

const age = column("Age:.metadata.creationTimestamp");

/** The built-in kinds. */
export const coreKinds: Kind[] = [
  core("Namespace", "", ["ns"], ["Status:.status.phase"], { namespaced: false, hasStatus: true }),
  core("Secret", "", [], ["Type:.type"]),
  core("ConfigMap", "", ["cm"], []),
  core("Pod", "", ["po"], ["Status:.status.phase", "IP:.status.podIP", "Node:.spec.nodeName"], {
    hasStatus: true,
    categories: ["all"],
  }),
  core(
    "Event",
    "",
    ["ev"],
    ["Last Seen:.lastTimestamp", "Type:.type", "Reason:.reason", "Object:.involvedObject.name", "Message:.message"],
  ),
  core("Lease", "coordination.k8s.io", [], ["Holder:.spec.holderIdentity"]),
  core("CustomResourceDefinition", "apiextensions.k8s.io", ["crd", "crds"], [], { namespaced: false, hasStatus: true }),
];

function core(kind: string, group: string, shortNames: string[], columns: string[], extra: Partial<Kind> = {}): Kind {
  const singular = kind.toLowerCase();
  const base = { ...named(group, "v1", `${singular}s`), kind, singular, shortNames, categories: [] };
  return {
    ...base,
    namespaced: true,
    hasStatus: false,
    columns: [...columns.map(column), age],
    schema: undefined,
    ...extra,
  };
}

function named(group: string, version: string, plural: string) {
  const [apiVersion, key] = group === "" ? [version, plural] : [`${group}/${version}`, `${plural}.${group}`];
  return { group, version, plural, apiVersion, key };
}

function column(text: string): Column {
  const [name = "", jsonPath = ""] = text.split(":");
  const type = jsonPath.endsWith("Timestamp") ? "date" : "string";
  return { name, type, jsonPath, description: name, priority: 0 };
}

const text = z.string();
// Of the real server. A group without a dot, or a plural with one, could name what another kind is stored under.
const label = z.string().regex(/^[a-z]([-a-z0-9]*[a-z0-9])?$/, "must be a lowercase DNS label");
const domain = z.string().regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$/, {
  error: "should be a domain with at least one dot",
});
const names = { kind: text, plural: label, singular: text.optional() };
const columnOf = {
  name: text,
  type: text,
  jsonPath: text,
  description: text.default(""),
  priority: z.number().default(0),
};
const version = z.looseObject({
  name: text,
  served: z.boolean(),
  schema: z.looseObject({ openAPIV3Schema: z.looseObject({}) }),
  subresources: z.looseObject({ status: z.unknown() }).partial().default({}),
  additionalPrinterColumns: z.array(z.looseObject(columnOf)).default([{ ...age }]),
});
const definition = z.looseObject({
  group: domain,
  scope: z.enum(["Namespaced", "Cluster"]),
  names: z.looseObject({ ...names, shortNames: z.array(text).default([]), categories: z.array(text).default([]) }),
  versions: z.array(version),
});

const known = new WeakMap<KubeObject, Kind[]>();

/** All kinds that are served now. */
export function servedKinds(store: Store): Kind[] {
  return [...coreKinds, ...store.list(definitionsKey).flatMap(customKinds)];
}

/** The kinds that a CustomResourceDefinition defines. Throws a 422 that says what cannot be served. */
export function customKinds(crd: KubeObject): Kind[] {
  const kinds = known.get(crd) ?? toKinds(crd);
  known.set(crd, kinds);
  return kinds;
}

function toKinds(crd: KubeObject): Kind[] {
  try {
    const { group, scope, names: given, versions } = definition.parse(crd["spec"]);
    const { kind, plural, singular = kind.toLowerCase(), shortNames, categories } = given;
    const { key } = named(group, "", plural);
    if (crd.metadata.name !== key) throw new Error(`metadata.name: must be spec.names.plural+"."+spec.group: ${key}`);
    if (coreKinds.some((core) => core.key === key)) throw new Error(`${key} is built in`);
    return versions.flatMap(({ name, served, schema, subresources, additionalPrinterColumns: columns }) => {
      const base = { ...named(group, name, plural), kind, singular, shortNames, categories, columns };
      const [namespaced, hasStatus] = [scope === "Namespaced", subresources.status !== undefined];
      return served ? { ...base, namespaced, hasStatus, schema: new CustomSchema(schema.openAPIV3Schema) } : [];
    });
  } catch (error) {
    throw unprocessable(
      `CustomResourceDefinition.apiextensions.k8s.io "${crd.metadata.name}" is invalid: ${reasonOf(error)}`,
    );
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof z.ZodError)) return error instanceof Error ? error.message : "it has no schema";
  return error.issues.map(({ path, message }) => `spec.${path.join(".")}: ${message}`).join(", ");
}
