import { z } from "zod";
import { healthProbeSettings } from "#functions/health-probe/config.ts";
import { leaseApiSettings } from "#functions/lease-api/config.ts";
import { reconcileSettings } from "#functions/reconcile/config.ts";
import { watcherSettings } from "#functions/watcher/config.ts";
import { clusterSettings, processSettings } from "#shared/process/settings.ts";

const groups: [string, z.ZodObject][] = [
  ["Every process", processSettings],
  ["watcher and functions", clusterSettings],
  ["watcher", watcherSettings],
  ["functions: reconcile", reconcileSettings],
  ["functions: health-probe", healthProbeSettings],
  ["lease-api", leaseApiSettings],
];

const intro = `# Settings

Made by \`npm run generate\` from the code. Do not edit.

Settings are environment variables, read once when a process starts. An empty one counts as not set. A wrong one ends
the start, and is named with what was expected. \`all\` reads those of every role.
`;

/** The page that lists every setting, made from the schemas that parse them. */
export function settingsPage(): string {
  const sections = groups.map(([title, schema]) => {
    const rows = Object.entries(schema.shape).map(([name, field]) => row(name, field));
    return `\n## ${title}\n\n| setting | default | |\n|---|---|---|\n${rows.join("\n")}\n`;
  });
  return intro + sections.join("");
}

function row(name: string, field: z.core.$ZodType): string {
  const description = z.globalRegistry.get(field)?.description;
  if (description === undefined) throw new Error(`${name} has no description`);
  return `| \`${name}\` | ${defaultOf(field)} | ${description.replaceAll("|", "\\|")} |`;
}

function defaultOf(field: z.core.$ZodType): string {
  if (field instanceof z.ZodDefault) return `\`${String(field.def.defaultValue)}\``;
  return field instanceof z.ZodOptional ? "none" : "required";
}
