import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { Redis } from "ioredis";

export interface TestRedis {
  url: string;
  port: number;
  password: string;
  pid: number;
  /** kill -9. The folder stays, so with `--appendonly yes` the data does, too. */
  crash(): Promise<void>;
  /** Starts it again after `crash`, on the same port; resolves once it answers. */
  restart(): Promise<void>;
  /** Ends the server and removes its folder. */
  stop(): Promise<void>;
}

/** A free loopback port. Somebody else may take it before it is used: callers start their server at once. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port was given");
  return address.port;
}

/**
 * Starts a real redis-server of the test's own, with a password as everywhere in this product.
 * `args` are added to its command line. Throws when it does not answer within 10 s.
 */
export async function startRedis(args: string[] = []): Promise<TestRedis> {
  const [port, password, dir] = [
    await freePort(),
    randomBytes(12).toString("hex"),
    await mkdtemp(path.join(tmpdir(), "redis-")),
  ];
  const options = ["--port", `${port}`, "--bind", "127.0.0.1", "--requirepass", password, "--dir", dir, "--save", ""];
  const url = `redis://:${password}@127.0.0.1:${port}`;
  const launch = (): Promise<Server> => launchServer(url, [...options, "--maxmemory-policy", "noeviction", ...args]);
  let server: Server;
  try {
    server = await launch();
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
  return {
    url,
    port,
    password,
    get pid() {
      return server.pid;
    },
    crash: () => server.kill(),
    async restart() {
      server = await launch();
    },
    async stop() {
      await server.kill();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** The same as a cluster of one node, which refuses a script over two slots as any cluster does. */
export async function startRedisCluster(): Promise<TestRedis> {
  // The bus port is the port plus 10,000 otherwise, which need not exist; alone, a node does not know its address.
  const bus = ["--cluster-port", String(await freePort()), "--cluster-announce-ip", "127.0.0.1"];
  const server = await startRedis(["--cluster-enabled", "yes", ...bus]);
  const client = new Redis(server.url);
  await client.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
  client.disconnect();
  return { ...server, url: server.url.replace("redis:", "redis+cluster:") };
}

interface Server {
  pid: number;
  kill(): Promise<void>;
}

async function launchServer(url: string, options: string[]): Promise<Server> {
  // It dies with the test run, however that ends; and it keeps its environment, which tells whose process it is, since it
  // does not write its title over it.
  const command = ["--pdeathsig", "KILL", "--", "redis-server", "--set-proc-title", "no", ...options];
  const server = spawn("setpriv", command, { stdio: "ignore" });
  const exited = new Promise<void>((resolve) => {
    server.once("exit", () => resolve());
    server.once("error", () => resolve());
  });
  const kill = async (): Promise<void> => {
    server.kill("SIGKILL");
    await exited;
  };
  const client = new Redis(url, { maxRetriesPerRequest: null, retryStrategy: () => 20, lazyConnect: true });
  client.on("error", () => undefined); // refused until the server listens
  try {
    const late = new Promise<never>((_, reject) =>
      setTimeout(() => reject(new Error("redis-server did not start")), 10_000).unref(),
    );
    await Promise.race([
      client
        .connect()
        .catch(() => undefined)
        .then(() => client.ping()),
      late,
    ]);
  } catch (error) {
    await kill();
    throw error;
  } finally {
    client.disconnect();
  }
  if (server.pid === undefined) throw new Error("redis-server has no process id: is it installed?");
  return { pid: server.pid, kill };
}
