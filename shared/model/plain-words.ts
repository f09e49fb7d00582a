import type { z } from "zod";

/** Types as somebody names them who writes YAML and does not know ours. */
const typeNames: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a mapping (key: value)",
  record: "a mapping (key: value)",
};

/**
 * Says what is wrong with a value to whoever wrote the file, without the words of a schema library and without the
 * value, which may be a secret. For `safeParse(value, { error: plainWords })`: a schema's own message goes first.
 */
export function plainWords(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return wrongType([issue.expected], issue.input);
    case "invalid_union":
      return wrongType(
        issue.errors.flat().flatMap((inner) => (inner.code === "invalid_type" ? [inner.expected] : [])),
        issue.input,
      );
    case "invalid_value":
      return `expected one of ${issue.values.map(String).join(", ")}`;
    case "too_small":
      return `expected at least ${amount(issue.minimum, issue.origin)}`;
    case "too_big":
      return `expected at most ${amount(issue.maximum, issue.origin)}`;
    case "unrecognized_keys":
      return `unknown key ${issue.keys.join(", ")}`;
    case "invalid_key":
      return "this key is not allowed";
    case "invalid_format":
    case "invalid_element":
    case "not_multiple_of":
    case "custom":
      return "this value is not allowed";
  }
}

function wrongType(expected: readonly string[], input: unknown): string {
  if (input === undefined) return `is missing: expected ${names(expected)}`;
  if (typeof input === "number" && expected.includes("int")) return "expected a whole number";
  const isQuoted =
    typeof input === "string" && !expected.includes("string") && /^(\d+(\.\d+)?|true|false)$/.test(input);
  return `expected ${names(expected)}, not ${typeOf(input)}${isQuoted ? ": remove the quotes" : ""}`;
}

function names(types: readonly string[]): string {
  return types.map((type) => typeNames[type] ?? type).join(" or ") || "another value";
}

/** What kind of value somebody gave, e.g. `a list`. Never the value. */
export function typeOf(input: unknown): string {
  if (input === undefined || input === null) return "nothing";
  if (Array.isArray(input)) return "a list";
  return typeNames[typeof input] ?? "something else";
}

function amount(limit: number | bigint, origin: string): string {
  if (origin === "string") return `${limit} characters`;
  if (origin === "array" || origin === "set") return `${limit} in the list`;
  return String(limit);
}
