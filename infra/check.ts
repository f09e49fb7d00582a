import { spawn } from "node:child_process";
import { globSync } from "node:fs";
import path from "node:path";

/**
 * Everything that looks at the code without running it: `npm run check`. Each check runs although one before it has
 * failed; the last line adds them up.
 */
const root = path.join(import.meta.dirname, "..");

const checks: { name: string; script: string; args: string[] }[] = [
  { name: "types", script: "node_modules/typescript/bin/tsc", args: [] },
  { name: "lint", script: "node_modules/oxlint/bin/oxlint", args: ["--type-aware", "--deny-warnings"] },
  { name: "format", script: "node_modules/@biomejs/biome/bin/biome", args: ["ci", "."] },
  { name: "unused", script: "node_modules/knip/bin/knip.js", args: [] },
  { name: "generated", script: "infra/generate.ts", args: ["--check"] },
];

async function run(script: string, args: string[]): Promise<boolean> {
  const child = spawn(process.execPath, [path.join(root, script), ...args], { cwd: root, stdio: "inherit" });
  return await new Promise((resolve) => child.once("close", (code) => resolve(code === 0)));
}

let failed = 0;
for (const { name, script, args } of checks) {
  const ok = await run(script, args);
  console.log(`${ok ? "ok    " : "FAILED"} ${name}`);
  if (!ok) failed += 1;
}
// A checkout of which nothing is seen would pass every check.
if (globSync("{shared,functions}/**/*.ts", { cwd: root }).length === 0) throw new Error("there is no code to check");
console.log(`\n${checks.length - failed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed > 0 ? 1 : 0;
