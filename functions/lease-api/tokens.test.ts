import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { tokensFile } from "#test/lease-api.ts";
import { findToken, parseTokens } from "./tokens.ts";
import { TokensFile } from "./tokens-file.ts";

const a = { name: "a", secret: "secret-a", scopes: ["lease"] };
const b = { name: "b", secret: "secret-b", scopes: ["read"], namespaces: ["crawl"], maxLeases: 5 };

let dir: string;
let file: string;
let opened: TokensFile | undefined;
let reloads: number;
let complaints: string[];

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "tokens-"));
  file = path.join(dir, "tokens.yaml");
  reloads = 0;
  complaints = [];
});

afterEach(async () => {
  await opened?.close();
  opened = undefined;
  await rm(dir, { recursive: true, force: true });
});

/** Replaces the file at once, as a mounted Secret changes. */
async function write(text: string): Promise<void> {
  await writeFile(`${file}.new`, text);
  await rename(`${file}.new`, file);
}

async function open(): Promise<TokensFile> {
  opened = await TokensFile.open({
    path: file,
    pollMs: 10,
    onReload: () => (reloads += 1),
    onBad: (error) => complaints.push(error.message),
  });
  return opened;
}

const names = (tokens: TokensFile): string[] => tokens.tokens.map(({ name }) => name);

test("a token is found by what the client presents, whatever else is in the file", () => {
  const tokens = parseTokens(tokensFile([a, b]));
  expect(findToken(tokens, "secret-a")).toMatchObject({ name: "a", scopes: ["lease"] });
  expect(findToken(tokens, "secret-b")).toMatchObject({ name: "b", namespaces: ["crawl"], maxLeases: 5 });
  for (const wrong of ["", "secret-", "secret-aa", "SECRET-A"]) expect(findToken(tokens, wrong)).toBeUndefined();
});

test("a file as people write it is read", () => {
  const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
  const tokens = parseTokens(`# ours\ntokens:\n- {name: crawler-a, sha256: ${hash}, scopes: [read, lease]}\n`);
  expect(findToken(tokens, "test")).toMatchObject({ name: "crawler-a" });
});

test.each([
  ["no list", "{}", "tokens: "],
  ["not YAML", "tokens: [", "the file is not YAML"],
  ["an empty file", "", "the file: "],
  [
    "the token in place of its hash",
    "tokens: [{name: a, sha256: hunter2, scopes: [read]}]",
    "tokens[0].sha256: expected",
  ],
  ["an unknown scope", tokensFile([{ ...a, scopes: ["write"] }]), "tokens[0].scopes[0]: "],
  ["no scope", tokensFile([{ ...a, scopes: [] }]), "tokens[0].scopes: "],
  ["an unknown field", tokensFile([Object.assign({ maxlease: 1 }, a)]), "tokens[0]: unknown field (maxlease)"],
  ["a name with a space", tokensFile([a, { ...b, name: "b b" }]), "tokens[1].name: expected"],
  ["two tokens of one name", tokensFile([a, { ...b, name: "a" }]), "tokens: two tokens have the same name"],
  ["a quota of none", tokensFile([{ ...a, maxLeases: 0 }]), "tokens[0].maxLeases: "],
])("%s is refused with the path of the mistake, and nothing is repeated", (_, text, message) => {
  expect(() => parseTokens(text)).toThrow(message);
  expect(() => parseTokens(text)).toThrow(/^(?!.*hunter2)/s);
});

test("a changed file is in force without a restart", async () => {
  await write(tokensFile([a]));
  const tokens = await open();
  await write(tokensFile([b]));
  await expect.poll(() => names(tokens)).toEqual(["b"]);
  expect(reloads).toBe(1);
  expect(complaints).toEqual([]);
});

test("a bad or missing file leaves the last good one in force and is reported once", async () => {
  await write(tokensFile([a]));
  const tokens = await open();
  await write("tokens: 7");
  await expect.poll(() => complaints).toEqual([expect.stringContaining(`${file}: tokens: `)]);
  await rm(file);
  await expect.poll(() => complaints).toHaveLength(2);
  expect(names(tokens)).toEqual(["a"]);
  await write(tokensFile([a, b]));
  await expect.poll(() => names(tokens)).toEqual(["a", "b"]);
  expect(complaints).toHaveLength(2);
});

test("a bad or missing file at the start is an error that names it", async () => {
  await expect(open()).rejects.toThrow(`LEASE_TOKENS_FILE ${file} cannot be read`);
  await write("tokens: 7");
  await expect(open()).rejects.toThrow(`LEASE_TOKENS_FILE ${file}: tokens: `);
});
