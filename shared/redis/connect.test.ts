import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { inspect } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { freePort, startRedis, startRedisCluster, type TestRedis } from "#test/redis.ts";
import { connectRedis, type RedisClient, type RedisConnectOptions } from "./connect.ts";

async function serve(args: string[] = []): Promise<TestRedis> {
  const server = await startRedis(args);
  onTestFinished(() => server.stop());
  return server;
}

function connect(url: string, whenDown: RedisConnectOptions["whenDown"] = "wait"): RedisClient {
  const redis = connectRedis({ url, name: "connect-test", whenDown, onError: () => undefined });
  onTestFinished(() => redis.disconnect());
  return redis;
}

/** A Sentinel that watches the server as `main`, and itself asks for a password. */
async function startSentinel(master: TestRedis, password: string): Promise<number> {
  const port = await freePort();
  const dir = await mkdtemp(path.join(tmpdir(), "sentinel-"));
  const lines = [
    `port ${port}`,
    "bind 127.0.0.1",
    `requirepass ${password}`,
    `sentinel monitor main 127.0.0.1 ${master.port} 1`,
    `sentinel auth-pass main ${master.password}`,
  ];
  await writeFile(path.join(dir, "sentinel.conf"), lines.join("\n"));
  const sentinel = spawn("redis-server", [path.join(dir, "sentinel.conf"), "--sentinel"], { stdio: "ignore" });
  const exited = new Promise((resolve) => sentinel.once("exit", resolve));
  onTestFinished(async () => {
    sentinel.kill("SIGKILL");
    await exited;
    await rm(dir, { recursive: true });
  });
  return port;
}

test("a single server is reached with password and database, under the connection's name", async () => {
  const server = await serve();
  const redis = connect(`${server.url}/2`);
  await redis.set("k", "v");
  expect(await connect(`${server.url}/2`).get("k")).toBe("v");
  expect(await connect(server.url).get("k")).toBeNull();
  expect(await redis.client("LIST")).toContain("name=connect-test");
});

test("the master is found through a Sentinel that has a password of its own", async () => {
  const server = await serve();
  const port = await startSentinel(server, "sentinel-pw");
  const url = `redis+sentinel://:${server.password}@127.0.0.1:${port}/main?sentinelPassword=sentinel-pw`;
  await connect(url).set("k", "v");
  expect(await connect(server.url).get("k")).toBe("v");
});

test("a cluster is reached", async () => {
  const cluster = await startRedisCluster();
  onTestFinished(() => cluster.stop());
  expect(await connect(cluster.url).set("k", "v")).toBe("OK");
});

test("whenDown fail: a command fails while Redis is away, and works again once it is back", async () => {
  const server = await serve();
  const redis = connect(server.url, "fail");
  await expect.poll(() => redis.ping().catch(String), { timeout: 15_000 }).toBe("PONG");
  await server.crash();
  await expect(redis.ping()).rejects.toThrow();
  await server.restart();
  await expect.poll(() => redis.ping().catch(String), { timeout: 15_000 }).toBe("PONG");
});

test("whenDown wait: a command waits until Redis is back", async () => {
  const server = await serve();
  const redis = connect(server.url, "wait");
  await redis.ping();
  await server.crash();
  const answer = redis.ping();
  await server.restart();
  expect(await answer).toBe("PONG");
});

test("connection errors go to onError, and none holds the password", async () => {
  const server = await serve();
  const errors: Error[] = [];
  const url = server.url.replace(server.password, "wrong-password");
  const redis = connectRedis({ url, name: "t", whenDown: "wait", onError: (error) => errors.push(error) });
  onTestFinished(() => redis.disconnect());
  await expect.poll(() => errors.length, { timeout: 15_000 }).toBeGreaterThan(0);
  expect(inspect(errors)).not.toContain("wrong-password");
});
