import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { StressLog } from "./log.ts";

export interface WorkerPoolDeps {
  /** Urls of the queue's Redis and of the log's. */
  urls: [string, string];
  log: StressLog;
  lockMs: number;
  seed: number;
}

/** The worker processes of one stress test; each exit goes into the log. */
export class WorkerPool {
  readonly #deps: WorkerPoolDeps;
  readonly #workers: ChildProcess[] = [];
  #started = 0;

  constructor(deps: WorkerPoolDeps) {
    this.#deps = deps;
  }

  async fill(count: number): Promise<void> {
    const file = fileURLToPath(new URL("./worker.ts", import.meta.url));
    while (this.#workers.length < count) {
      this.#started += 1;
      const { urls, lockMs, seed } = this.#deps;
      const args = [...urls, String(lockMs), String(seed + this.#started)];
      const worker = fork(file, args, { execArgv: [] });
      this.#workers.push(worker);
      await once(worker, "message");
    }
  }

  /** Ends one worker and starts another in its place. `which`: at least 0, less than 1. */
  async replace(which: number, how: "SIGKILL" | "SIGTERM"): Promise<void> {
    const count = this.#workers.length;
    const [victim] = this.#workers.splice(Math.floor(which * count), 1);
    if (victim !== undefined) await this.#end(victim, how);
    await this.fill(count);
  }

  async empty(): Promise<void> {
    await Promise.all(this.#workers.splice(0).map((worker) => this.#end(worker, "SIGKILL")));
  }

  async #end(worker: ChildProcess, how: "SIGKILL" | "SIGTERM"): Promise<void> {
    const exited = once(worker, "exit");
    worker.kill(how);
    await exited;
    await this.#deps.log.write({ ev: "exit", pid: worker.pid ?? 0 });
  }
}
