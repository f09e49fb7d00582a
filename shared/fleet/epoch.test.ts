import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { startRedis, type TestRedis } from "#test/redis.ts";
import { Fleet } from "./fleet.ts";

let server: TestRedis;
let redis: Redis;
let fleet: Fleet;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
});

afterAll(async () => {
  await redis.quit();
  await server.stop();
});

beforeEach(async () => {
  await redis.flushall();
  fleet = new Fleet({ redis });
});

test("a data set has its name once it was filled, and none after it was emptied", async () => {
  await fleet.beginEpoch("one");
  expect(await fleet.epoch()).toBeNull();
  expect(await fleet.finishEpoch("one")).toBe(true);
  expect(await fleet.epoch()).toBe("one");
  await redis.flushall();
  expect(await fleet.epoch()).toBeNull();
});

test("a data set that was emptied while it was filled gets no name", async () => {
  await fleet.beginEpoch("one");
  await redis.flushall();
  expect(await fleet.finishEpoch("one")).toBe(false);
  expect(await fleet.epoch()).toBeNull();
});

test("a fill that was never finished gives way to the next one, and names nothing any more", async () => {
  await fleet.beginEpoch("dead");
  await fleet.beginEpoch("alive");
  expect(await fleet.finishEpoch("dead")).toBe(false);
  expect(await fleet.finishEpoch("alive")).toBe(true);
  expect(await fleet.epoch()).toBe("alive");
});
