import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { localFiles, writeTokensFile } from "./files.ts";

test("the token that is shown to try things out is a crawler's, not an administrator's", async () => {
  const dir = await mkdtemp(path.join(tmpdir(), "files-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  const files = localFiles(dir);
  await writeTokensFile(files, "secret");
  const text = await readFile(files.tokens, "utf8");
  expect(text).toMatch(/scopes:\s+- read\s+- lease\s*$/);
  expect(text).not.toContain("secret");
});
