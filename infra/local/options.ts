import { existsSync, statSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { Failure, toFailure } from "#shared/errors/failure.ts";

export interface StartOptions {
  once: boolean;
  help: boolean;
  /** Absolute; may not be there yet. */
  dir: string;
  leasePort: number;
}

/**
 * What `npm start` is told. Throws Permanent `BadOption` with the name of the option, what was given and what is
 * expected. `env`: npm puts options there that it was given without `--`, and does not pass them on.
 */
export function parseOptions(args: string[], env: Readonly<Record<string, string | undefined>>): StartOptions {
  const kept = ["once", "dir", "lease-port"].find((name) => env[`npm_config_${name.replace("-", "_")}`] !== undefined);
  if (kept !== undefined && args.length === 0)
    throw bad(`npm keeps --${kept} for itself: put -- before the options, as in \`npm start -- --${kept}\`.`);
  const values = parsed(args);
  const port = values["lease-port"];
  const leasePort = /^\d{1,5}$/.test(port) ? Number(port) : 0;
  if (leasePort < 1 || leasePort > 65_535)
    throw bad(`--lease-port: expected a port from 1 to 65535, got ${JSON.stringify(port)}.`);
  if (values.dir === "") throw bad("--dir: expected the name of a folder, got nothing.");
  const dir = path.resolve(values.dir);
  let there = dir;
  while (!existsSync(there)) there = path.dirname(there);
  if (!statSync(there).isDirectory()) throw bad(`--dir: expected a folder, and ${there} is none.`);
  return { once: values.once, help: values.help, dir, leasePort };
}

function parsed(args: string[]) {
  try {
    return parseArgs({
      args,
      options: {
        once: { type: "boolean", default: false },
        dir: { type: "string", default: ".local" },
        "lease-port": { type: "string", default: "8090" },
        help: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    throw bad(`${toFailure(error).message}\nSee npm start -- --help.`);
  }
}

function bad(message: string): Failure {
  return new Failure({ class: "Permanent", code: "BadOption", message });
}
