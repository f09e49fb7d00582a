import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { stringify } from "yaml";
import { settingsPage } from "#infra/settings-page.ts";
import { proxyCrd } from "#shared/model/crd.ts";

/**
 * Writes the files that are made from the code: `npm run generate`.
 * With `--check` it writes nothing and fails when a committed file differs.
 */
const root = path.join(import.meta.dirname, "..");
const yamlNote = "# Made by `npm run generate` from shared/model. Do not edit.\n";

export function generatedFiles(): Map<string, string> {
  return new Map([
    ["charts/egress-proxies/crds/proxies.yaml", yaml(proxyCrd())],
    ["docs/settings.md", settingsPage()],
  ]);
}

/** Names of the generated files that differ from what the code says. */
export function outdatedFiles(): string[] {
  return [...generatedFiles()].filter(([file, text]) => read(file) !== text).map(([file]) => file);
}

function yaml(value: unknown): string {
  return yamlNote + stringify(value, { lineWidth: 0, aliasDuplicateObjects: false });
}

function read(file: string): string | undefined {
  try {
    return readFileSync(path.join(root, file), "utf8");
  } catch {
    return undefined; // not there yet: outdated
  }
}

if (import.meta.main) {
  const outdated = outdatedFiles();
  if (process.argv.includes("--check")) {
    for (const file of outdated) console.error(`${file} is not what the code says: run \`npm run generate\``);
    process.exitCode = outdated.length > 0 ? 1 : 0;
  } else {
    for (const [file, text] of generatedFiles()) writeFileSync(path.join(root, file), text);
    console.log(outdated.length > 0 ? `wrote ${outdated.join(", ")}` : "nothing to do: every file is up to date");
  }
}
