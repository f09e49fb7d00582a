import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { Fleet } from "#shared/fleet/fleet.ts";
import { connectRedis, type RedisClient } from "#shared/redis/connect.ts";
import { fleetEntry } from "#test/fakes/fleet-entry.ts";
import { freePort, startRedis, type TestRedis } from "#test/redis.ts";
import { Census } from "./census.ts";
import { Proxies } from "./proxies.ts";
import { LeaseStore } from "./store.ts";

let server: TestRedis;
let redis: RedisClient | undefined;

beforeAll(async () => {
  // A node that knows no other does not know its own address either.
  const bus = `${await freePort()}`;
  server = await startRedis(["--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-announce-ip", "127.0.0.1"]);
  const node = new Redis(server.url);
  await node.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
  await vi.waitFor(async () => expect(await node.call("CLUSTER", "INFO")).toContain("cluster_state:ok"), 10_000);
  node.disconnect();
  const url = server.url.replace("redis:", "redis+cluster:");
  redis = connectRedis({ url, name: "test", onError: () => undefined, whenDown: "wait" });
});

afterAll(async () => {
  redis?.disconnect();
  await server.stop();
});

test("every script and read runs on Redis Cluster", async () => {
  if (redis === undefined) throw new Error("not connected");
  const monotonicMs = () => performance.now();
  const randomId = () => randomBytes(16).toString("hex");
  const store = new LeaseStore({ redis, randomId, random: () => 0, monotonicMs });
  const census = new Census({ redis, monotonicMs });
  const seed = { healthy: true, message: "It answered.", at: new Date(1000) };
  await new Fleet({ redis }).upsert(fleetEntry({ labels: { tier: "gold" }, seed }), 1);
  const request = { selector: { labels: { tier: "gold" } }, ttlMs: 60_000, tokenName: "t" };
  const result = await store.acquire(request, AbortSignal.timeout(10_000));
  if (result.outcome !== "granted") throw new Error(result.outcome);
  const { id } = result.lease;
  expect(await store.acquire(request, AbortSignal.timeout(10_000))).toEqual({ outcome: "nothing-free" });
  expect(await store.read(id)).toMatchObject({ state: "active" });
  expect((await store.list({ proxy: "crawl/p1" }, undefined)).leases).toHaveLength(1);
  expect(await census.counts({}, undefined)).toMatchObject({ matching: 1, full: 1 });
  expect((await new Proxies({ redis, census }).list({}, undefined)).proxies).toHaveLength(1);
  expect(await store.release(id, { tokenName: "t", leaseToken: result.lease.token })).toBe("released");
  expect(await store.reap(100)).toBe(0);
});
