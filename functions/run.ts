import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { startAdminServer } from "#shared/process/admin-server.ts";
import { checkEnvironment, parseEnvironment } from "#shared/process/environment.ts";
import { processSettings } from "#shared/process/settings.ts";
import { RunningParts, stopSignal } from "#shared/process/stop.ts";
import { createLogger, parseLogLevels } from "#shared/telemetry/logger.ts";
import { Metrics } from "#shared/telemetry/metrics.ts";
import { type FunctionName, functionNames } from "./roles/function-names.ts";
import type { ProcessContext, Role } from "./roles/process-context.ts";
import { FollowedProvidersFile } from "./roles/providers.ts";
import { settingsOfRole } from "./roles/settings.ts";

/** The composition root: which parts of Egress Proxies this process runs. */

const help = `Usage: node functions/run.ts ROLE [options]

Roles:
  watcher      turns Kubernetes events and timers into jobs
  functions    works on jobs and probes proxies; --only LIST runs some: ${functionNames.join(", ")}
  lease-api    serves the lease API
  all          everything in one process

Options:
  --only LIST  functions to run, separated by commas (role functions)
  --help       this text
  --version    the version

Settings are environment variables: see docs/settings.md.
`;

const stopTimeoutMs = 10_000;

/** Roles are imported only when they run: the lease API never loads the Kubernetes client. */
const roles: Record<string, (context: ProcessContext, only: readonly FunctionName[]) => Promise<Role[]>> = {
  watcher: async (context) => [await (await import("./roles/watcher.ts")).startWatcher(context)],
  functions: async (context, only) => [await (await import("./roles/functions.ts")).startFunctions(context, only)],
  "lease-api": async (context) => [await (await import("./roles/lease-api.ts")).startLeaseApi(context)],
  all: async (context, only) => {
    const { watcher, functions, "lease-api": leaseApi } = roles;
    const started: Role[] = [];
    for (const start of [watcher, functions, leaseApi]) started.push(...((await start?.(context, only)) ?? []));
    return started;
  },
};

async function main(): Promise<number> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { only: { type: "string" }, help: { type: "boolean" }, version: { type: "boolean" } },
  });
  if (values.help) return print(help);
  if (values.version) return print(`${version()}\n`);
  const role = positionals[0] ?? "";
  const start = roles[role];
  if (start === undefined || positionals.length !== 1)
    return misuse(`expected one role: ${Object.keys(roles).join(", ")}`);
  const only = values.only?.split(",") ?? [...functionNames];
  const unknown = only.filter((name) => !isFunctionName(name));
  if (unknown.length > 0)
    return misuse(`--only: unknown function ${unknown.join(", ")}; there are ${functionNames.join(", ")}`);
  const functions = only.filter(isFunctionName);
  checkEnvironment(settingsOfRole(role, functions), process.env);
  return await run(start, functions);
}

async function run(start: NonNullable<(typeof roles)[string]>, only: readonly FunctionName[]): Promise<number> {
  const settings = parseEnvironment(processSettings, process.env);
  const levels = parseLogLevels(settings.LOG_LEVEL);
  const log = createLogger({ levels, pretty: process.stdout.isTTY });
  const metrics = new Metrics();
  metrics.collectProcess();
  const parts = new RunningParts(log);
  const stopping = new AbortController();
  const stopped = stopSignal().then((signal) => {
    log.info({ signal }, "stopping");
    stopping.abort(new Error("the process stops"));
    return undefined;
  });
  let started: Role[] | undefined;
  try {
    const admin = await startAdminServer({
      host: settings.ADMIN_HOST,
      port: settings.ADMIN_PORT,
      metrics: () => metrics.registry.metrics(),
      metricsContentType: metrics.registry.contentType,
      notReady: () => started?.flatMap((role) => role.notReady()) ?? ["the start"],
    });
    parts.add("admin", () => admin.close());
    const context = { env: process.env, log, levels, metrics, parts, stopping: stopping.signal };
    const starting = start({ ...context, providersFile: new FollowedProvidersFile(context) }, only);
    started = await Promise.race([starting, stopped]);
    // A start that is cut off fails in its own time; nobody waits for it.
    if (started === undefined) starting.catch(() => undefined);
    else log.info({ adminPort: admin.port, version: version() }, "started");
    await stopped;
    return 0;
  } finally {
    await parts.stopAll(stopTimeoutMs);
  }
}

function isFunctionName(name: string): name is FunctionName {
  return functionNames.some((each) => each === name);
}

function version(): string {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return /"version": "([^"]+)"/.exec(text)?.[1] ?? "unknown";
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}

function misuse(message: string): number {
  process.stderr.write(`${message}\n\n${help}`);
  return 2;
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
