import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { keys, member } from "#shared/model/keys.ts";
import { connectRedis, type RedisClient } from "#shared/redis/connect.ts";
import { anybody, LeaseBench } from "#test/lease-store.ts";
import { startRedis, type TestRedis } from "#test/redis.ts";
import { LeaseStore } from "./store.ts";

let server: TestRedis;
let bench: LeaseBench;
let impatient: RedisClient;

beforeAll(async () => {
  server = await startRedis();
  bench = new LeaseBench(server.url);
  impatient = connectRedis({ url: server.url, name: "test", onError: () => undefined, whenDown: "fail" });
  await once(impatient, "ready");
});

afterAll(async () => {
  impatient.disconnect();
  bench.close();
  await server.stop();
});

test("a grant that Redis made after its client had given up is taken back", async () => {
  let last = 0;
  const store = new LeaseStore({
    redis: impatient,
    randomId: () => `id-${(last += 1)}`,
    random: () => 0,
    // The buckets stay known, so that the grant is the only command that waits for Redis.
    monotonicMs: () => 0,
  });
  await bench.register("p1");
  const record = keys.record(member("p1", 1));
  const first = await bench.acquire({}, store);
  if (first.outcome !== "granted") throw new Error(first.outcome);
  await store.release(first.lease.id, anybody);
  const before = await bench.redis.hget(record, "lastGrant");

  process.kill(server.pid, "SIGSTOP");
  try {
    await expect(bench.acquire({}, store)).rejects.toMatchObject({ code: "RedisUnavailable", ambiguous: true });
  } finally {
    process.kill(server.pid, "SIGCONT");
  }
  await expect.poll(() => bench.redis.hget(record, "lastGrant")).not.toBe(before);
  await expect.poll(() => bench.redis.hget(record, "leases")).toBe("0");
  expect(await bench.redis.zcard(keys.leaseExpiry)).toBe(0);
});
