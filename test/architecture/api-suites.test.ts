import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { apiSuites, realSuites } from "#test/cluster/suites.ts";

const root = path.join(import.meta.dirname, "../..");
const files = globSync("{shared,functions,infra,test}/**/*.test.ts", { cwd: root });
const known = new Set(globSync([...apiSuites, ...realSuites], { cwd: root }));

/** Whether a file, or a file beside it that it imports, starts a TestApi. */
function startsTestApi(file: string, seen = new Set<string>()): boolean {
  seen.add(file);
  const text = readFileSync(path.join(root, file), "utf8");
  if (/import \{[^}]*\bTestApi\b[^}]*\} from "#test\/kubernetes-api\.ts"/.test(text)) return true;
  const beside = [...text.matchAll(/from "(\.\/[^"]+)"/g)].map(([, target = ""]) =>
    path.posix.join(path.posix.dirname(file), target),
  );
  return beside.some((target) => !seen.has(target) && startsTestApi(target, seen));
}

test("every test of what either API may answer runs on both", () => {
  const asking = files.filter((file) => startsTestApi(file));
  expect(asking.length).toBeGreaterThan(15);
  expect(asking.filter((file) => !known.has(file))).toEqual([]);
});

test("each entry of the list is there", () => {
  expect([...apiSuites, ...realSuites].filter((suite) => globSync(suite, { cwd: root }).length === 0)).toEqual([]);
});
