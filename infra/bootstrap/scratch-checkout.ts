import { spawn } from "node:child_process";
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** A made-up checkout with the real bootstrap scripts, and a `bin` folder for stand-ins of npm, apt-get and tools. */
export class ScratchCheckout {
  readonly root: string;

  private constructor(root: string) {
    this.root = root;
  }

  static async make(): Promise<ScratchCheckout> {
    const root = await mkdtemp(path.join(tmpdir(), "bootstrap-"));
    const scripts = path.join(root, "infra/bootstrap");
    await mkdir(scripts, { recursive: true });
    await mkdir(path.join(root, "bin"));
    for (const file of await readdir(import.meta.dirname)) {
      if (file.endsWith(".mjs")) await copyFile(path.join(import.meta.dirname, file), path.join(scripts, file));
    }
    await writeFile(path.join(root, "package.json"), "{}");
    return new ScratchCheckout(root);
  }

  /** Writes a shell program of that name into `bin`. It records its arguments before it does anything. */
  async program(name: string, body: string): Promise<string> {
    const file = path.join(this.root, "bin", name);
    await writeFile(file, `#!/bin/sh\necho "${name} $*" >> "${this.root}/calls"\n${body}\n`);
    await chmod(file, 0o755);
    return file;
  }

  async write(file: string, content: string): Promise<void> {
    await mkdir(path.dirname(path.join(this.root, file)), { recursive: true });
    await writeFile(path.join(this.root, file), content);
  }

  /** What the stand-ins were called with, in order. */
  async calls(): Promise<string[]> {
    const text = await readFile(path.join(this.root, "calls"), "utf8").catch(() => "");
    return text.split("\n").filter((line) => line !== "");
  }

  /** Where only the stand-ins and the basic programs of a shell are found. */
  get env(): NodeJS.ProcessEnv {
    return { PATH: `${this.root}/bin:/bin`, HOME: this.root };
  }

  /** Starts run.mjs with `node`; `ended` settles when it has ended. */
  start(args: string[], options: { node?: string; env?: NodeJS.ProcessEnv } = {}) {
    const command = [path.join(this.root, "infra/bootstrap/run.mjs"), ...args];
    const child = spawn(options.node ?? process.execPath, command, {
      env: { ...this.env, ...options.env },
      cwd: this.root,
    });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => (stdout += chunk));
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => (stderr += chunk));
    const ended = new Promise<Ended>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
    });
    return { child, ended, output: () => stdout + stderr };
  }

  async run(args: string[], options: { node?: string; env?: NodeJS.ProcessEnv } = {}): Promise<Ended> {
    return this.start(args, options).ended;
  }

  async remove(): Promise<void> {
    await rm(this.root, { recursive: true, force: true });
  }
}
