import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type BoundProcess, startBoundProcess } from "./bound-process.ts";

export interface ProductOptions {
  env: Record<string, string>;
  logFile: string;
  /** Told of an end that nobody asked for; it is started again. */
  onDeath: (reason: string) => void;
}

export interface Product {
  /** Process id of the current life. */
  pid: () => number;
  stop: () => Promise<void>;
}

const stopGraceMs = 15_000;
const restartMs = 1_000;
const root = path.join(import.meta.dirname, "../..");

/** Runs every function in one process of its own, and starts that again when it dies: as a Deployment would. */
export async function startProduct(options: ProductOptions): Promise<Product> {
  const stopping = new AbortController();
  let current = await launch(options);
  const supervise = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const { reason } = await current.ended;
      if (stopping.signal.aborted) return;
      options.onDeath(reason);
      await sleep(restartMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (!stopping.signal.aborted) current = await launch(options);
    }
  };
  const supervised = supervise();
  return {
    pid: () => current.pid,
    stop: async () => {
      stopping.abort();
      await current.stop(stopGraceMs);
      await supervised;
    },
  };
}

function launch({ env, logFile }: ProductOptions): Promise<BoundProcess> {
  const args = [path.join(root, "functions/run.ts"), "all"];
  return startBoundProcess({ command: process.execPath, args, logFile, env });
}
