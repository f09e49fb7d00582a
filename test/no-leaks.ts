import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";

const mark = "EGRESS_PROXIES_TEST_RUN";

/**
 * Fails the run when a process that a test started outlives it. Every process inherits a mark in its environment; what
 * carries it at the end, and is no worker of vitest, was leaked.
 */
export default function setup(): () => void {
  const run = randomUUID();
  process.env[mark] = run;
  return () => {
    const leaked = readdirSync("/proc").filter(
      (pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid && carries(pid, run),
    );
    if (leaked.length > 0) throw new Error(`processes that tests left behind:\n${leaked.map(describe).join("\n")}`);
  };
}

function carries(pid: string, run: string): boolean {
  return read(pid, "environ").includes(`${mark}=${run}`) && !/vitest/.test(read(pid, "cmdline"));
}

function describe(pid: string): string {
  return `  ${pid} ${read(pid, "cmdline").replaceAll("\0", " ")}`;
}

/** Empty for one that has just ended, and for one of somebody else. */
function read(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}
