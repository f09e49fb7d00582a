import { existsSync, statSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { Failure, toFailure } from "#shared/errors/failure.ts";
import { dnsLabelPattern } from "#shared/model/names.ts";

/** A cluster of the user's, to be used instead of the small API. */
export interface ClusterOptions {
  /** Absolute. */
  kubeconfigFile: string;
  namespace: string;
  withAgent: boolean;
}

export interface StartOptions {
  once: boolean;
  help: boolean;
  /** Absolute; may not be there yet. */
  dir: string;
  leasePort: number;
  /** Undefined: the small API. */
  cluster: ClusterOptions | undefined;
}

const names = ["once", "dir", "lease-port", "kubeconfig", "with-agent", "namespace"];

/**
 * What `npm start` is told. Throws Permanent `BadOption` with the name of the option, what was given and what is
 * expected. `env`: npm puts options there that it was given without `--`, and does not pass them on.
 */
export function parseOptions(args: string[], env: Readonly<Record<string, string | undefined>>): StartOptions {
  const kept = names.find((name) => env[`npm_config_${name.replace("-", "_")}`] !== undefined);
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
  return { once: values.once, help: values.help, dir, leasePort, cluster: clusterOf(values) };
}

function clusterOf(values: ReturnType<typeof parsed>): ClusterOptions | undefined {
  const { kubeconfig, namespace = "egress-proxies", "with-agent": withAgent } = values;
  if (kubeconfig === undefined) {
    if (withAgent) throw bad("--with-agent: only with --kubeconfig; the small API has a node agent already.");
    if (values.namespace !== undefined) throw bad("--namespace: only with --kubeconfig.");
    return undefined;
  }
  if (kubeconfig === "") throw bad("--kubeconfig: expected the name of a file, got nothing.");
  // The samples' namespace has it in its name, which must not be too long either.
  if (namespace.length > 50 || !new RegExp(dnsLabelPattern).test(namespace))
    throw bad(
      `--namespace: expected a namespace's name of at most 50 characters (a-z, 0-9, -), got ${JSON.stringify(namespace)}.`,
    );
  return { kubeconfigFile: path.resolve(kubeconfig), namespace, withAgent };
}

function parsed(args: string[]) {
  try {
    return parseArgs({
      args,
      options: {
        once: { type: "boolean", default: false },
        dir: { type: "string", default: ".local" },
        "lease-port": { type: "string", default: "8090" },
        kubeconfig: { type: "string" },
        "with-agent": { type: "boolean", default: false },
        namespace: { type: "string" },
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
