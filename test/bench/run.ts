import { parseArgs } from "node:util";
import { RunningParts, stopSignal } from "#shared/process/stop.ts";
import { createLogger } from "#shared/telemetry/logger.ts";
import type { Bench, BenchContext } from "./bench.ts";
import { fleetBench } from "./fleet.ts";
import { jobsBench } from "./jobs.ts";
import { leaseBench } from "./lease.ts";
import { printTable } from "./table.ts";

/** `npm run bench`: lists the benches; `npm run bench -- NAME` runs one and prints its table. */

const benches: Readonly<Record<string, Bench>> = { jobs: jobsBench, lease: leaseBench, fleet: fleetBench };

const help = `Usage: npm run bench -- NAME [options]

Benches:
${Object.entries(benches)
  .map(([name, { summary, defaultSeconds }]) => `  ${name.padEnd(6)} ${summary} (${defaultSeconds} s)`)
  .join("\n")}

Options:
  --seconds N  about how long to measure in all, from 1 to 3600
  --size N     bench fleet: how many Proxies, from 1 to 100000
  --help       this text

What each figure means: docs/benchmarks.md.
`;

const partStopMs = 5_000;

async function main(): Promise<number> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { seconds: { type: "string" }, size: { type: "string" }, help: { type: "boolean" } },
  });
  const [name, ...more] = positionals;
  if (values.help || name === undefined) {
    process.stdout.write(help);
    return 0;
  }
  const bench = Object.hasOwn(benches, name) ? benches[name] : undefined;
  if (bench === undefined || more.length > 0) return misuse(`expected one bench: ${Object.keys(benches).join(", ")}`);
  const seconds = Number(values.seconds ?? bench.defaultSeconds);
  if (!(seconds >= 1 && seconds <= 3600)) return misuse("--seconds: expected a number from 1 to 3600");
  const size = values.size === undefined ? undefined : Number(values.size);
  if (size !== undefined && !(Number.isInteger(size) && size >= 1 && size <= 100_000))
    return misuse("--size: expected a whole number from 1 to 100000");
  return await runBench(bench, { seconds, ...(size === undefined ? {} : { size }) });
}

async function runBench(bench: Bench, options: Omit<BenchContext, "parts">): Promise<number> {
  const log = createLogger({ levels: { level: "warn", components: {} }, pretty: true });
  const parts = new RunningParts(log);
  const interrupted = stopSignal().then(() => undefined);
  try {
    const table = await Promise.race([bench.run({ ...options, parts }), interrupted]);
    if (table === undefined) return 130;
    printTable(table);
    return 0;
  } finally {
    await parts.stopAll(partStopMs);
  }
}

function misuse(message: string): number {
  process.stderr.write(`${message}\n\n${help}`);
  return 2;
}

// What an interrupted bench still does is cut off by the exit; its parts are stopped by then.
main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
