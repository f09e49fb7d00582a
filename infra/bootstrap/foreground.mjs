import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import process from "node:process";
import { isatty } from "node:tty";

/** The user or the system asked this run to stop. */
export class Interrupted extends Error {
  /** @param {NodeJS.Signals} signal */
  constructor(signal) {
    super(`stopped by ${signal}`);
    this.signal = signal;
  }
}

/**
 * Runs programs, one at a time, and stays in charge of signals meanwhile: a program is told, awaited, and only then may
 * this process end. That way nothing half-done (a lock, a changed system file) is left behind.
 */
export class Foreground {
  /** @type {import("node:child_process").ChildProcess | undefined} */
  #child;
  /** @type {NodeJS.Signals | undefined} */
  #received;
  #receivedAt = Number.NEGATIVE_INFINITY;

  constructor() {
    for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]))
      process.on(signal, () => this.#receive(signal));
  }

  /** Throws Interrupted when a signal has arrived since the start. */
  check() {
    if (this.#received !== undefined) throw new Interrupted(this.#received);
  }

  /**
   * Runs a program to its end. Rejects when it cannot be started. `output` is what it wrote, where stdio says "pipe".
   * @param {string} command
   * @param {string[]} args
   * @param {import("node:child_process").SpawnOptions} options
   * @returns {Promise<{code: number | null, signal: NodeJS.Signals | null, output: string}>}
   */
  run(command, args, options) {
    return new Promise((resolve, reject) => {
      const child = spawn(command, args, options);
      this.#child = child;
      let output = "";
      for (const stream of [child.stdout, child.stderr]) {
        stream?.setEncoding("utf8").on("data", (chunk) => {
          output += chunk;
        });
      }
      child.once("error", (error) => {
        this.#child = undefined;
        reject(error);
      });
      child.once("close", (code, signal) => {
        this.#child = undefined;
        resolve({ code, signal, output });
      });
    });
  }

  /** @param {NodeJS.Signals} signal */
  #receive(signal) {
    this.#received ??= signal;
    // npm passes on what the whole group has got already: the same wish, told twice.
    const isRepeat = performance.now() - this.#receivedAt < 1_000;
    this.#receivedAt = performance.now();
    if (isRepeat) return;
    if (signal === "SIGINT" && terminalReachedTheChildToo()) return;
    this.#child?.kill(signal);
  }
}

/**
 * Ends this process the way a signal would, so that whoever started it sees that signal.
 * @param {NodeJS.Signals} signal
 */
export function endBySignal(signal) {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

/**
 * Ctrl-C goes to the whole process group in the terminal's foreground. Passing it on would give the child a second one,
 * which many programs take for "stop at once, without cleaning up".
 */
function terminalReachedTheChildToo() {
  try {
    // pid (name) state parent group session tty foreground-group ...; the name may hold spaces and brackets.
    const fields = readFileSync("/proc/self/stat", "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    return fields[2] === fields[5];
  } catch {
    return isatty(0); // no /proc outside Linux
  }
}
