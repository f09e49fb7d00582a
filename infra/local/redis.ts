import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "#shared/errors/failure.ts";
import { type BoundProcess, startBoundProcess } from "./bound-process.ts";
import { freePort } from "./free-port.ts";

export interface LocalRedisOptions {
  /** The server's data and password; made when missing. A later start with the same folder resumes with the data. */
  dir: string;
  /** For a server that takes the place of one that died; any free one by default. */
  port?: number;
  /** Gives up waiting for readiness. */
  signal?: AbortSignal;
}

export interface LocalRedis {
  /** With the password in it: never log it. */
  url: string;
  port: number;
  pid: number;
  /** Settles with the reason when the server has ended, whoever ended it. */
  ended: Promise<string>;
  /** Writes what is not on disk yet, then ends. */
  stop(): Promise<void>;
}

const readyTimeoutMs = 30_000;
const stopGraceMs = 10_000;

/**
 * Starts a redis-server on loopback that loses no acknowledged write older than a second.
 * Throws a Failure with the server's last log lines when it does not come up, `PortInUse` when `port` is taken.
 */
export async function startLocalRedis(options: LocalRedisOptions): Promise<LocalRedis> {
  // The server runs in another folder than we do.
  const dir = path.resolve(options.dir);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const password = await ownPassword(dir);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOn(options.port ?? (await freePort()), password, { ...options, dir });
    } catch (error) {
      // A free port may be taken by somebody else in the meantime.
      const again = error instanceof Failure && error.code === "PortInUse" && options.port === undefined && attempt < 3;
      if (!again) throw error;
    }
  }
}

async function startOn(port: number, password: string, { dir, signal }: LocalRedisOptions): Promise<LocalRedis> {
  const configFile = path.join(dir, "redis.conf");
  const logFile = path.join(dir, "redis.log");
  // A file and not arguments: everybody on the machine may read the arguments of a process.
  await writeFile(configFile, config({ port, password, dir }), { mode: 0o600 });
  const server = await startBoundProcess({ command: "redis-server", args: [configFile], logFile });
  const ended = server.ended.then(({ reason }) => reason);
  try {
    await ready(server, logFile, port, signal);
  } catch (error) {
    await server.stop(0);
    throw error;
  }
  const url = `redis://:${password}@127.0.0.1:${port}`;
  return { url, port, pid: server.pid, ended, stop: () => server.stop(stopGraceMs) };
}

function config({ port, password, dir }: { port: number; password: string; dir: string }): string {
  return [
    `port ${port}`,
    "bind 127.0.0.1",
    `requirepass ${password}`,
    `dir ${JSON.stringify(dir)}`,
    "appendonly yes",
    'save ""',
    // An evicted lease or job would be a lost one.
    "maxmemory-policy noeviction",
    "daemonize no",
    "",
  ].join("\n");
}

/** Made once, so that the server and its clients agree across starts. */
async function ownPassword(dir: string): Promise<string> {
  const file = path.join(dir, "password");
  try {
    const kept = (await readFile(file, "utf8")).trim();
    if (kept !== "") return kept;
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error) || error.code !== "ENOENT") throw error;
  }
  const password = randomBytes(24).toString("base64url");
  await writeFile(file, `${password}\n`, { mode: 0o600 });
  return password;
}

/** The log tells, because a ping would be answered while the data is still being loaded. */
async function ready(server: BoundProcess, logFile: string, port: number, signal?: AbortSignal): Promise<void> {
  for (const deadline = Date.now() + readyTimeoutMs; Date.now() < deadline; ) {
    signal?.throwIfAborted();
    const end = await Promise.race([server.ended, sleep(20, undefined)]);
    if (end?.reason.includes("Address already in use") === true) {
      throw failure("PortInUse", `Port ${port} of 127.0.0.1 is in use: stop what uses it, then start again.`);
    }
    if (end !== undefined) throw failure("RedisNotReady", `redis-server ${end.reason}`);
    if ((await readFile(logFile, "utf8")).includes("Ready to accept connections")) return;
  }
  throw failure("RedisNotReady", `redis-server was not ready after ${readyTimeoutMs / 1000} s: see ${logFile}`);
}

function failure(code: string, message: string): Failure {
  return new Failure({ class: "Permanent", code, message });
}
