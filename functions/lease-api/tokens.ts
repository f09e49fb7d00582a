import { createHash, timingSafeEqual } from "node:crypto";
import { parse } from "yaml";
import { z } from "zod";
import { dnsLabelPattern } from "#shared/model/names.ts";
import { plainWords } from "#shared/model/plain-words.ts";

const scopes = ["read", "lease", "admin"] as const;
export type Scope = (typeof scopes)[number];

const apiToken = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9._-]{1,63}$/, "expected 1 to 63 of A-Z, a-z, 0-9, dot, underscore and -"),
  sha256: z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/, "expected the sha256 of the token as 64 hex digits: printf %s TOKEN | sha256sum")
    .transform((hex) => Buffer.from(hex, "hex")),
  scopes: z.array(z.enum(scopes)).min(1),
  namespaces: z
    .array(z.string().max(63).regex(new RegExp(dnsLabelPattern), "expected a namespace"))
    .min(1)
    .optional(),
  maxLeases: z.int().min(1).optional(),
});
export type ApiToken = z.infer<typeof apiToken>;

const tokenList = z
  .strictObject({ tokens: z.array(apiToken) })
  .refine(({ tokens }) => new Set(tokens.map((token) => token.name)).size === tokens.length, {
    path: ["tokens"],
    error: "two tokens have the same name",
  });

/**
 * Reads the text of the tokens file. Throws an Error that names every bad field and never repeats what stands there:
 * somebody may have put the token itself in place of its hash.
 */
export function parseTokens(text: string): ApiToken[] {
  const result = tokenList.safeParse(parseYaml(text), { error: plainWords });
  if (result.success) return result.data.tokens;
  const lines = result.error.issues.map((issue) => {
    const keys = issue.code === "unrecognized_keys" ? ` (${issue.keys.join(", ")})` : "";
    return `${fieldName(issue.path)}: ${issue.code === "unrecognized_keys" ? `unknown field${keys}` : issue.message}`;
  });
  throw new Error(lines.join("; "));
}

function parseYaml(text: string): unknown {
  try {
    return parse(text, { prettyErrors: false });
  } catch {
    throw new Error("the file is not YAML");
  }
}

function fieldName(path: readonly PropertyKey[]): string {
  const name = path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
  return name === "" ? "the file" : name.replace(/^\./, "");
}

/** The token that was presented, or undefined. Takes as long for a wrong one as for any other. */
export function findToken(tokens: readonly ApiToken[], presented: string): ApiToken | undefined {
  const hash = createHash("sha256").update(presented).digest();
  let found: ApiToken | undefined;
  for (const token of tokens) if (timingSafeEqual(token.sha256, hash)) found = token;
  return found;
}
