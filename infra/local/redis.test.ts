import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type LocalRedis, startLocalRedis } from "./redis.ts";

let dir: string;
let started: LocalRedis[];
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "local redis-"));
  started = [];
});
afterEach(async () => {
  await Promise.all(started.map((redis) => redis.stop()));
  await rm(dir, { recursive: true, force: true });
});

async function start(port?: number): Promise<LocalRedis> {
  const redis = await startLocalRedis({ dir, ...(port === undefined ? {} : { port }) });
  started.push(redis);
  return redis;
}

async function ask<T>(url: string, question: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => null });
  client.on("error", () => undefined); // the command itself rejects
  try {
    return await question(client);
  } finally {
    client.disconnect();
  }
}

test("a second start on the same folder resumes with the data, under the same password", async () => {
  const first = await start();
  await ask(first.url, (client) => client.set("kept", "yes"));
  await first.stop();
  const second = await start(first.port);
  expect(second.url).toBe(first.url);
  expect(await ask(second.url, (client) => client.get("kept"))).toBe("yes");
});

test("the folder may be named from where we are", async () => {
  const redis = await startLocalRedis({ dir: path.relative(process.cwd(), dir) });
  started.push(redis);
  expect(await ask(redis.url, (client) => client.config("GET", "dir"))).toContain(dir);
});

test("nobody gets in without the password, which only its owner can read and no command line shows", async () => {
  const redis = await start();
  await expect(ask(`redis://127.0.0.1:${redis.port}`, (client) => client.ping())).rejects.toThrow(/NOAUTH/);
  for (const file of ["password", "redis.conf"]) expect((await stat(path.join(dir, file))).mode & 0o777).toBe(0o600);
  const password = (await readFile(path.join(dir, "password"), "utf8")).trim();
  expect(redis.url).toContain(password);
  expect(await readFile(`/proc/${redis.pid}/cmdline`, "utf8")).not.toContain(password);
});

test("nothing is evicted, and every write goes to disk", async () => {
  const { url } = await start();
  expect(await ask(url, (client) => client.config("GET", "maxmemory-policy"))).toContain("noeviction");
  expect(await ask(url, (client) => client.config("GET", "appendonly"))).toContain("yes");
});

test("a server that dies is noticed, with how it ended and its last log lines", async () => {
  const redis = await start();
  process.kill(redis.pid, "SIGKILL");
  expect(await redis.ended).toMatch(/^ended by SIGKILL\n[^]*Ready to accept connections/);
});

test("a port in use is named", async () => {
  const first = await start();
  const other = await mkdtemp(path.join(tmpdir(), "local-redis-"));
  await expect(startLocalRedis({ dir: other, port: first.port })).rejects.toMatchObject({
    code: "PortInUse",
    message: `Port ${first.port} of 127.0.0.1 is in use: stop what uses it, then start again.`,
  });
  await rm(other, { recursive: true });
});

test("the server dies with the process that started it, even when that one is killed", async () => {
  const program = `import { startLocalRedis } from ${JSON.stringify(path.join(import.meta.dirname, "redis.ts"))};
    console.log((await startLocalRedis({ dir: ${JSON.stringify(dir)} })).pid);`;
  await writeFile(path.join(dir, "parent.ts"), program);
  const parent = spawn(process.execPath, [path.join(dir, "parent.ts")], { stdio: ["ignore", "pipe", "inherit"] });
  const [line]: unknown[] = await once(parent.stdout, "data");
  const pid = Number(String(line));
  expect(pid).toBeGreaterThan(0);
  parent.kill("SIGKILL");
  await expect.poll(async () => isRunning(pid)).toBe(false);
});

async function isRunning(pid: number): Promise<boolean> {
  // An ended process that nobody waited for still has a folder there, in state Z.
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return status !== "" && !/^\d+ \(.*\) Z/.test(status);
}
