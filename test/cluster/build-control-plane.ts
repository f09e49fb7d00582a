import { glob, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import path from "node:path";
import { endBySignal } from "#infra/bootstrap/foreground.mjs";
import { withLock } from "#infra/bootstrap/lock.mjs";
import { toFailure } from "#shared/errors/failure.ts";
import { builtFolder, findBinaries } from "./binaries.ts";
import { buildFromModules } from "./go-modules.ts";

/** Makes sure that there are etcd and kube-apiserver: finds them, or builds them once per user. */

const deadlineMs = 30 * 60_000;

async function build(folder: string, signal: AbortSignal): Promise<void> {
  for await (const left of glob(`${folder}.building-*`)) await rm(left, { recursive: true, force: true });
  const work = await mkdtemp(`${folder}.building-`);
  try {
    say(`Building etcd and kube-apiserver once, into ${folder}: about ten minutes on two cores, 4 GB of Go's caches`);
    const out = path.join(work, "out");
    await mkdir(out);
    await buildFromModules(out, { work, say, signal });
    await rm(folder, { recursive: true, force: true });
    await rename(out, folder); // there whole, or not at all
  } finally {
    await rm(work, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function main(stopping: AbortSignal): Promise<void> {
  const folder = builtFolder();
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(deadlineMs)]);
  const onWait = (pid: number): void => say(`Process ${pid} builds etcd and kube-apiserver: waiting for it`);
  const check = (): void => signal.throwIfAborted();
  if (findBinaries() === undefined)
    await withLock(`${folder}.lock`, { onWait, check }, async () => {
      if (findBinaries() === undefined) await build(folder, signal); // another run may have done it meanwhile
    });
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

const stopping = new AbortController();
let received: NodeJS.Signals | undefined;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => {
    received ??= signal;
    stopping.abort();
  });
try {
  await main(stopping.signal);
} catch (error) {
  if (received !== undefined) endBySignal(received);
  else say(toFailure(error).message);
  process.exitCode = 1;
}
