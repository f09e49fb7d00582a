import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect, vi } from "vitest";
import { ApiClient } from "#infra/local/api-client.ts";
import type { Proxy } from "#shared/model/proxy.ts";
import { markVariable, type OwnProcess, ownProcesses } from "./own-processes.ts";

const startFile = path.join(import.meta.dirname, "../../../infra/local/start.ts");
const startTimeoutMs = 40_000;

export interface Squid {
  pid: number;
  address: string;
  /** Prefix of its files in /dev/shm. */
  serviceName: string;
}

export interface InstallationOptions {
  dir: string;
  leasePort: number;
  once?: boolean;
  /** Of a cluster, to be used instead of the small API. */
  kubeconfig?: string;
  /** More of the command line. */
  more?: string[];
}

function argumentsOf({ dir, leasePort, once = false, kubeconfig, more = [] }: InstallationOptions): string[] {
  const cluster = kubeconfig === undefined ? [] : ["--kubeconfig", kubeconfig];
  return ["--dir", dir, "--lease-port", String(leasePort), ...(once ? ["--once"] : []), ...cluster, ...more];
}

/** One `npm start` on a folder: the real process with all that it starts. */
export class Installation {
  readonly dir: string;
  readonly #mark = randomUUID();
  readonly #kubeconfigFile: string;
  readonly #child: ChildProcess;
  readonly exited: Promise<number>;
  /** Everything that it has printed so far. */
  output = "";

  /** Starts it and returns at once. */
  constructor(options: InstallationOptions) {
    this.dir = options.dir;
    this.#kubeconfigFile = options.kubeconfig ?? path.join(options.dir, "kubeconfig");
    this.#child = spawn(process.execPath, [startFile, ...argumentsOf(options)], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, [markVariable]: this.#mark },
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.output += text;
      });
    }
    this.exited = once(this.#child, "close").then(([code]) => Number(code ?? -1));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** The first group of `pattern` in the output, once it is there. Fails with the output when it ends before. */
  async said(pattern: RegExp): Promise<string> {
    const found = (): string | undefined => {
      const match = pattern.exec(this.output);
      return match === null ? undefined : (match[1] ?? "");
    };
    const ended = this.exited.then((code) => {
      const last = found();
      if (last !== undefined) return last;
      throw new Error(`ended with ${code} before it said ${pattern}:\n${this.output}`);
    });
    const waiting = vi.waitUntil(() => found() !== undefined, { timeout: startTimeoutMs }).then(() => found() ?? "");
    return await Promise.race([waiting, ended]);
  }

  async started(): Promise<void> {
    await this.said(/Ctrl-C stops everything/);
  }

  async processes(): Promise<OwnProcess[]> {
    return await ownProcesses(this.#mark, this.dir);
  }

  /** The one process whose arguments hold `word`, e.g. `functions/run.ts`. */
  async process(word: string): Promise<number> {
    const found = (await this.processes()).filter(({ pid, argv }) => pid !== this.pid && argv.join(" ").includes(word));
    expect(
      found.map(({ argv }) => argv),
      `processes with ${word}`,
    ).toHaveLength(1);
    return found[0]?.pid ?? 0;
  }

  /** The Squids that run now, without their helpers. */
  async squids(): Promise<Squid[]> {
    const squids: Squid[] = [];
    for (const { pid, argv } of await this.processes()) {
      const config = argv.find((arg) => arg.endsWith("/squid.conf"));
      if (config === undefined || !argv[0]?.endsWith("squid")) continue;
      const text = await readFile(config, "utf8").catch(() => ""); // its files go right after it
      const address = /^http_port (\S+):/m.exec(text)?.[1] ?? "";
      squids.push({ pid, address, serviceName: argv[argv.indexOf("-n") + 1] ?? "" });
    }
    return squids;
  }

  /** Kills whatever is left, however it went. */
  async destroy(): Promise<void> {
    this.kill("SIGKILL");
    await this.exited;
    for (const { pid } of await this.processes()) process.kill(pid, "SIGKILL");
  }

  /** Runs `work` with a client of the installation's Kubernetes API. */
  async kubernetes<T>(work: (api: ApiClient) => Promise<T>): Promise<T> {
    const api = new ApiClient({ kubeconfigFile: this.#kubeconfigFile });
    try {
      return await work(api);
    } finally {
      await api.close();
    }
  }

  async createProxy(name: string, spec: object, namespace = "default"): Promise<void> {
    const manifest = { apiVersion: "crawl.example.com/v1alpha1", kind: "Proxy" as const, metadata: { name }, spec };
    expect(await this.kubernetes((api) => api.create(manifest, namespace))).toBe(true);
  }

  /** Those of all namespaces. */
  async proxies(): Promise<Proxy[]> {
    return await this.kubernetes((api) => api.proxies("*"));
  }

  async proxy(name: string): Promise<Proxy | undefined> {
    return (await this.proxies()).find(({ metadata }) => metadata.name === name);
  }

  /** `Ready`, or what it says instead. */
  async readiness(name: string): Promise<string> {
    const { phase, conditions } = (await this.proxy(name))?.status ?? {};
    const ready = conditions?.find(({ type }) => type === "Ready");
    return phase === "Ready" ? phase : `${phase}: ${ready?.reason}: ${ready?.message}`;
  }

  /** The address of each Squid against that of each Proxy: equal when every Proxy has exactly one, and nobody else. */
  async census(): Promise<{ squids: string[]; proxies: string[] }> {
    const [squids, proxies] = [await this.squids(), await this.proxies()];
    return {
      squids: squids.map(({ address }) => address).sort(),
      proxies: proxies.map(({ status }) => (status.phase === "Ready" ? (status.endpoint?.host ?? "") : "")).sort(),
    };
  }
}
