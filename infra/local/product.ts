import path from "node:path";
import { startBoundProcess } from "./bound-process.ts";
import type { Running } from "./keep-running.ts";

const stopGraceMs = 15_000;
const root = path.join(import.meta.dirname, "../..");

/** Starts every function in one process of its own, which ends with this one. */
export async function startProduct(options: { env: Record<string, string>; logFile: string }): Promise<Running> {
  const args = [path.join(root, "functions/run.ts"), "all"];
  const product = await startBoundProcess({ command: process.execPath, args, append: true, ...options });
  return { pid: product.pid, ended: product.ended.then(({ reason }) => reason), stop: () => product.stop(stopGraceMs) };
}
