import { z } from "zod";

/** A setting of the environment is wrong or missing. The message names each with what was expected. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
}

/**
 * Reads settings from the environment. An empty variable counts as absent, as Helm charts and shells produce them.
 * Throws SettingsError naming every bad setting; never repeats a value, which may be a secret.
 */
export function parseEnvironment<T extends z.ZodType>(
  schema: T,
  env: Readonly<Record<string, string | undefined>>,
): z.infer<T> {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ""));
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  const lines = result.error.issues.map((issue) => `  ${issue.path.join(".")}: ${explain(issue, given)}`);
  throw new SettingsError(`invalid settings:\n${lines.join("\n")}\nSee docs/settings.md.`);
}

function explain(issue: z.core.$ZodIssue, given: Record<string, string | undefined>): string {
  const name = String(issue.path[0]);
  return given[name] === undefined ? "is required and not set" : issue.message;
}

/** A whole number from a variable. */
export function integer(min: number, max: number) {
  const expected = `expected a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^-?\d+$/, expected)
    .transform(Number)
    .pipe(z.number().min(min, expected).max(max, expected));
}

/** `true` or `false` from a variable. */
export const flag = z
  .enum(["true", "false"], { error: "expected true or false" })
  .transform((value) => value === "true");
