import { spawn } from "node:child_process";
import { chmod, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./redis.ts";

export interface TestSquid {
  port: number;
  /** What it wrote to stderr so far. */
  log(): string;
  stop(): Promise<void>;
}

/**
 * Starts a real Squid on a free loopback port. `config` makes the squid.conf for the folder that will hold `files`.
 * Throws, with what Squid said, when it does not listen within 15 s.
 */
export async function startSquid(options: {
  config: (at: { dir: string; port: number }) => string;
  files?: Record<string, string>;
}): Promise<TestSquid> {
  const [port, dir] = [await freePort(), await mkdtemp(path.join(tmpdir(), "squid-"))];
  // Started as root, Squid goes on as user proxy, who must be able to read its files.
  await chmod(dir, 0o755);
  const files = { ...options.files, "squid.conf": options.config({ dir, port }) };
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(dir, name), text, { mode: 0o644 });
  // The name keeps shared memory apart from other Squids on this machine.
  const name = `test${port}`;
  const child = spawn("/usr/sbin/squid", ["-N", "-d", "1", "-n", name, "-f", path.join(dir, "squid.conf")], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => resolve()).once("error", () => resolve());
  });
  const stop = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exited;
    const left = (await readdir("/dev/shm")).filter((file) => file.startsWith(`${name}-`));
    for (const file of left) await rm(path.join("/dev/shm", file), { force: true });
    await rm(dir, { recursive: true, force: true });
  };
  for (let tries = 0; tries < 300 && child.exitCode === null; tries += 1) {
    if (await listens(port)) return { port, log: () => log, stop };
    await sleep(50);
  }
  await stop();
  throw new Error(`squid did not start:\n${log}`);
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

/** Sends raw bytes and returns all that comes back until the other side closes, or `enough` is seen. */
export function exchange(port: number, request: string, enough?: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    let answer = "";
    socket.setEncoding("utf8").setTimeout(20_000, () => socket.destroy(new Error(`no answer to ${request}`)));
    socket.on("data", (text: string) => {
      answer += text;
      if (enough?.test(answer)) socket.destroy();
    });
    socket.once("error", reject).once("close", () => resolve(answer));
    socket.write(request);
  });
}
