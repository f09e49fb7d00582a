import { createHash } from "node:crypto";
import { parseDocument } from "yaml";
import { z } from "zod";
import { Failure } from "#shared/errors/failure.ts";
import { dnsLabelPattern } from "#shared/model/names.ts";
import { plainWords, typeOf } from "#shared/model/plain-words.ts";
import { kubernetesSettings } from "./kubernetes/settings.ts";

const name = z
  .string()
  .max(63)
  .regex(
    new RegExp(dnsLabelPattern),
    "expected a DNS label (a-z, 0-9 and -, at most 63): the name becomes part of queue names and labels; rename it here and in the Proxies that use it",
  );

/** A block that is present but empty (`kubernetes:`) is null in YAML and means the same as none. */
function block<T extends z.ZodType>(settings: T) {
  return z.preprocess((value) => value ?? {}, settings);
}

const shared = { name, concurrency: z.int().min(1).max(1000).default(10) };

/** One entry per type. A new provider type adds a line here and one in the factory. */
const entrySchema = z.discriminatedUnion("type", [
  z.strictObject({ ...shared, type: z.literal("kubernetes"), kubernetes: block(kubernetesSettings) }),
]);
const builtIn = ["kubernetes"];
const planned = ["gcp", "kvm"];

const fileSchema = z.strictObject(
  {
    providers: z
      .array(z.looseObject({}, "expected a provider with name and type"), "expected a list of providers")
      .min(1, "expected at least one provider"),
  },
  "expected the key providers with a list",
);

/** A provider of the file. `concurrency`: Proxies that one process reconciles at once; RECONCILE_CONCURRENCY caps it. */
export type ProviderEntry = z.infer<typeof entrySchema> & {
  /** Hash of type and settings: another one means another provider behind the same name. */
  revision: string;
};

const explained = { error: plainWords };

/**
 * Reads the text of a providers file. Throws Permanent `InvalidProvidersFile` whose message names every error with its
 * path, one per line, e.g. `providers[1].kubernetes.connectPorts[0]: expected a number, not text: remove the quotes`.
 */
export function parseProviders(text: string): ProviderEntry[] {
  const file = fileSchema.safeParse(parseYaml(text), explained);
  if (!file.success) throw invalid(file.error.issues.map((issue) => line(issue.path, issue)));
  const errors: string[] = [];
  const entries: ProviderEntry[] = [];
  for (const [index, raw] of file.data.providers.entries()) {
    const path = ["providers", index];
    const problems = [...typeProblems(raw, path), ...foreignBlocks(raw, path)];
    const parsed = problems.length > 0 ? undefined : entrySchema.safeParse(raw, explained);
    errors.push(...problems, ...(parsed?.error?.issues ?? []).map((issue) => line([...path, ...issue.path], issue)));
    const twin = file.data.providers.findIndex((other) => other["name"] === raw["name"]);
    if (twin < index && typeof raw["name"] === "string")
      errors.push(`${show([...path, "name"])}: ${raw["name"]} is already the name of providers[${twin}]`);
    if (parsed?.data !== undefined) entries.push({ ...parsed.data, revision: revision(parsed.data) });
  }
  if (errors.length > 0) throw invalid(errors);
  return entries;
}

function parseYaml(text: string): unknown {
  const document = parseDocument(text);
  const [error] = document.errors;
  // Only the first line of the message: the others quote the file.
  if (error !== undefined) throw invalid([`not YAML: ${error.message.split("\n")[0]?.replace(/:$/, "")}`]);
  try {
    return document.toJS();
  } catch {
    // A bomb: few lines that would expand to gigabytes.
    throw invalid(["not YAML that can be read: its aliases expand to too much, or to nothing: write the values out"]);
  }
}

function typeProblems(raw: Record<string, unknown>, path: PropertyKey[]): string[] {
  const { type } = raw;
  const at = show([...path, "type"]);
  if (typeof type === "string" && builtIn.includes(type)) return [];
  if (typeof type === "string" && planned.includes(type))
    return [`${at}: type ${type} is not built in yet: remove this provider`];
  return [
    `${at}: expected one of ${builtIn.join(", ")}, received ${typeof type === "string" ? JSON.stringify(type) : typeOf(type)}`,
  ];
}

function foreignBlocks(raw: Record<string, unknown>, path: PropertyKey[]): string[] {
  return [...builtIn, ...planned]
    .filter((type) => type !== raw["type"] && raw[type] !== undefined)
    .map(
      (type) =>
        `${show([...path, type])}: a block of type ${type} in a provider of another type: remove the block or change type`,
    );
}

function revision({ type, ...entry }: z.infer<typeof entrySchema>): string {
  return createHash("sha256")
    .update(JSON.stringify([type, entry[type]]))
    .digest("hex")
    .slice(0, 16);
}

function line(path: PropertyKey[], issue: z.core.$ZodIssue): string {
  if (issue.code !== "unrecognized_keys") return `${show(path) || "the file"}: ${issue.message}`;
  return issue.keys.map((key) => `${show([...path, key])}: unknown key`).join("\n");
}

function show(path: PropertyKey[]): string {
  return path
    .map((part, index) => (typeof part === "number" ? `[${part}]` : `${index > 0 ? "." : ""}${String(part)}`))
    .join("");
}

function invalid(errors: string[]): Failure {
  return new Failure({
    class: "Permanent",
    code: "InvalidProvidersFile",
    scope: "provider",
    message: errors.join("\n"),
  });
}
