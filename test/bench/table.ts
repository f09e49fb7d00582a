import os from "node:os";

/** What a bench found. */
export interface Table {
  title: string;
  columns: readonly string[];
  rows: readonly (readonly string[])[];
  /** As INFO says it. */
  redisVersion: string;
  /** How it was measured, in a few words. */
  conditions: string;
}

/** Prints a table as Markdown, so that it can be put into a page as it is, under the machine that it was measured on. */
export function printTable(table: Table): void {
  const lines = [`\n${table.title}`, machine(table.redisVersion), table.conditions, "", ...grid(table)];
  process.stdout.write(`${lines.join("\n")}\n`);
}

/** A rate, a count: `12,300`. */
export function whole(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

/** The load average is there to tell a quiet run from one that shared its cores. */
function machine(redisVersion: string): string {
  const cpus = os.cpus();
  const model = cpus[0]?.model.trim() ?? "unknown CPU";
  const load = os.loadavg()[0]?.toFixed(1);
  const software = `Node ${process.versions.node}, Redis ${redisVersion} without persistence`;
  return `${cpus.length} cores (${model}), ${software}; load average at the end ${load}`;
}

function grid({ columns, rows }: Table): string[] {
  const widths = columns.map((name, at) => Math.max(name.length, ...rows.map((row) => row[at]?.length ?? 0)));
  const pad = (cell: string, at: number): string => {
    const width = widths[at] ?? 0;
    return at === 0 ? cell.padEnd(width) : cell.padStart(width);
  };
  const line = (cells: readonly string[]): string => `| ${cells.map(pad).join(" | ")} |`;
  const rule = widths.map((width, at) => (at === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  return [line(columns), line(rule), ...rows.map(line)];
}
