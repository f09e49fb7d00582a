import { z } from "zod";

/** A setting of the environment is wrong or missing. The message names each with what was expected. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads settings from the environment. An empty variable counts as absent, as Helm charts and shells produce them.
 * Throws SettingsError naming every bad setting; never repeats a value, which may be a secret.
 */
export function parseEnvironment<T extends z.ZodType>(schema: T, env: Environment): z.infer<T> {
  const given = whatIsSet(env);
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  throw invalid(explain(result.error, given));
}

/** Throws one SettingsError for all that is wrong with the settings of several schemas, so that nobody mends them one by one. */
export function checkEnvironment(schemas: readonly z.ZodType[], env: Environment): void {
  const given = whatIsSet(env);
  const lines = schemas.flatMap((schema) => explain(schema.safeParse(given).error, given));
  if (lines.length > 0) throw invalid([...new Set(lines)]);
}

function whatIsSet(env: Environment): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined || value === "" ? [] : [[name, value]])),
  );
}

function explain(error: z.ZodError | undefined, given: Record<string, string>): string[] {
  return (error?.issues ?? []).map(({ path, code, message }) => {
    const isMissing = code === "invalid_type" && given[String(path[0])] === undefined;
    return `${path.join(".")}: ${isMissing ? "is required and not set: " : ""}${message}`;
  });
}

function invalid(lines: readonly string[]): SettingsError {
  return new SettingsError(`invalid settings:\n${lines.map((line) => `  ${line}`).join("\n")}\nSee docs/settings.md.`);
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
