import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startRedis, type TestRedis } from "#test/redis.ts";
import { redisCall, redisPipeline } from "./redis-call.ts";

let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
  await redis.set("text", "x");
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

function replyError(message: string): Error {
  return Object.assign(new Error(message), { name: "ReplyError" });
}

test.each([
  "LOADING Redis is loading the dataset in memory",
  "READONLY You can't write against a read only replica.",
  "OOM command not allowed",
])("the reply %j means that Redis cannot be used now", async (message) => {
  const call = redisCall(() => Promise.reject(replyError(message)));
  await expect(call).rejects.toMatchObject({ code: "RedisUnavailable", class: "Transient", ambiguous: false });
});

test("a lost connection means that Redis cannot be used now, and that the command may have run", async () => {
  const call = redisCall(() => Promise.reject(new Error("Connection is closed.")));
  await expect(call).rejects.toMatchObject({ code: "RedisUnavailable", ambiguous: true });
});

test("a mistake of ours is not taken for an outage", async () => {
  await expect(redisCall(() => redis.lpush("text", "y"))).rejects.toThrow("WRONGTYPE");
  await expect(redisCall(() => Promise.reject(new TypeError("x is not a function")))).rejects.toThrow(TypeError);
});

test("one failed command fails its pipeline", async () => {
  expect(await redisPipeline(redis.pipeline().get("text").get("none"))).toEqual(["x", null]);
  await expect(redisPipeline(redis.pipeline().get("text").hget("text", "f"))).rejects.toThrow("WRONGTYPE");
});
