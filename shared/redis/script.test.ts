import { inspect } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startRedis, type TestRedis } from "#test/redis.ts";
import { connectRedis, type RedisClient } from "./connect.ts";
import { Script } from "./script.ts";

const echo = new Script(new URL("./echo.test.lua", import.meta.url));
let server: TestRedis;
let redis: RedisClient;

beforeEach(async () => {
  server = await startRedis();
  redis = connectRedis({ url: server.url, name: "test", whenDown: "wait", onError: () => undefined });
});

afterEach(async () => {
  redis.disconnect();
  await server.stop();
});

test("a script runs although Redis has never seen it, and again after Redis forgot it", async () => {
  expect(await echo.run(redis, ["n"], ["a"])).toEqual([1, "a"]);
  await redis.script("FLUSH");
  expect(await echo.run(redis, ["n"], [7])).toEqual([2, "7"]);
});

test("once known, a script is not sent again", async () => {
  await echo.run(redis, ["n"], ["a"]);
  await redis.config("RESETSTAT");
  await echo.run(redis, ["n"], ["a"]);
  const stats = await redis.info("commandstats");
  expect(stats).toContain("cmdstat_evalsha:calls=1");
  expect(stats).not.toContain("cmdstat_eval:");
});

test("an error inside a script reaches the caller without the arguments, and the script is not run twice", async () => {
  await redis.set("n", "not a number");
  await redis.config("RESETSTAT");
  const error: unknown = await echo.run(redis, ["n"], ["a-secret"]).catch((reason: unknown) => reason);
  expect(error).toHaveProperty("message", expect.stringContaining("not an integer"));
  expect(await redis.info("commandstats")).toContain("cmdstat_incr:calls=1");
  expect(inspect(error)).not.toContain("a-secret");
});

test("a missing file fails when the script is made, not when it runs", () => {
  expect(() => new Script(new URL("./absent.lua", import.meta.url))).toThrow(/ENOENT/);
});
