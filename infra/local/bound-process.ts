import { spawn } from "node:child_process";
import { closeSync, fchownSync, fstatSync, openSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

export interface BoundProcessOptions {
  command: string;
  args: string[];
  /** What the program writes goes there. */
  logFile: string;
  /** Keeps what the file holds already. Otherwise it is emptied first, so that it tells of this life only. */
  append?: boolean;
  /** Added to the environment. */
  env?: Record<string, string>;
  /** Run as that user; only root can. */
  user?: { uid: number; gid: number } | undefined;
}

export interface BoundProcess {
  pid: number;
  /** Settles once the program has ended, however. The text tells a person how, with its last log lines. */
  ended: Promise<{ code: number; reason: string }>;
  /** SIGTERM, and SIGKILL when it has not ended after `graceMs`. Settles once it has ended. */
  stop(graceMs: number): Promise<void>;
}

/**
 * Starts a program that dies with this process, even when this one is killed with SIGKILL: the kernel sends it the
 * signal (`setpriv --pdeathsig`). It gets a session of its own, so that Ctrl-C in the terminal reaches only us, who end
 * things in order. Rejects when it cannot be started.
 */
export async function startBoundProcess(options: BoundProcessOptions): Promise<BoundProcess> {
  const { command, args, logFile, append = false, user, env } = options;
  const log = openSync(logFile, append ? "a" : "w", 0o600);
  const begin = fstatSync(log).size;
  // Changing the user clears the kernel's promise, so setpriv does both, in the right order.
  const identity = user === undefined ? [] : ["--reuid", `${user.uid}`, "--regid", `${user.gid}`, "--clear-groups"];
  try {
    if (user !== undefined) fchownSync(log, user.uid, user.gid);
    const argv = ["--pdeathsig", "KILL", ...identity, "--", command, ...args];
    const child = spawn("setpriv", argv, {
      stdio: ["ignore", log, log],
      detached: true,
      cwd: "/",
      env: { ...process.env, ...env },
    });
    const exit = new Promise<{ code: number; how: string }>((resolve) => {
      child.once("exit", (code, signal) => {
        resolve(code === null ? { code: 128, how: `ended by ${signal}` } : { code, how: `exited with code ${code}` });
      });
    });
    const pid = await new Promise<number>((resolve, reject) => {
      child.once("spawn", () => resolve(child.pid ?? 0));
      child.once("error", reject);
    });
    const ended = exit.then(async ({ code, how }) => ({ code, reason: await withLastLines(how, logFile, begin) }));
    return { pid, ended, stop: (graceMs) => stop(child.kill.bind(child), ended, graceMs) };
  } finally {
    closeSync(log);
  }
}

async function stop(
  kill: (signal: NodeJS.Signals) => boolean,
  ended: Promise<unknown>,
  graceMs: number,
): Promise<void> {
  const waiting = new AbortController();
  kill("SIGTERM");
  const late = sleep(graceMs, "late", { signal: waiting.signal }).catch(() => "ended");
  if ((await Promise.race([ended.then(() => "ended"), late])) === "late") kill("SIGKILL");
  await ended;
  waiting.abort();
}

/** Of this life: what the log held at its `begin` (in bytes) is older. */
async function withLastLines(how: string, logFile: string, begin: number): Promise<string> {
  // The folder may be removed together with the process; how it ended is known all the same.
  const log = await readFile(logFile).catch(() => Buffer.alloc(0));
  const lines = log
    .subarray(begin)
    .toString("utf8")
    .split("\n")
    .filter((line) => line.trim() !== "");
  return [how, ...lines.slice(-5)].join("\n");
}
