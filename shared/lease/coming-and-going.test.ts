import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { keys, member } from "#shared/model/keys.ts";
import { fleetEntry } from "#test/fakes/fleet-entry.ts";
import { anybody, LeaseBench, seed } from "#test/lease-store.ts";
import { startRedis, type TestRedis } from "#test/redis.ts";

let server: TestRedis;
let bench: LeaseBench;

beforeAll(async () => {
  server = await startRedis();
  bench = new LeaseBench(server.url);
});

beforeEach(() => bench.reset());

afterAll(async () => {
  bench.close();
  await server.stop();
});

test("a removed proxy takes no new lease, and its running one shows it", async () => {
  await bench.register("p1", { max: 2 });
  const lease = await bench.granted();
  await bench.fleet.upsert(fleetEntry({ uid: "p1", name: "p1", max: 2, draining: true }), 2);
  expect(await bench.acquire()).toEqual({ outcome: "nothing-free" });
  expect(await bench.store.read(lease.id)).toMatchObject({ state: "draining" });
  await bench.fleet.remove(member("p1", 1), 3);
  expect(await bench.acquire()).toEqual({ outcome: "nothing-free" });
  expect(await bench.store.read(lease.id)).toMatchObject({ state: "revoked", member: "p1:1" });
  expect(await bench.store.release(lease.id, anybody)).toBe("released");
  expect(await bench.fleet.read(member("p1", 1))).toBeUndefined();
  expect(await bench.acquire()).toEqual({ outcome: "nothing-free" });
});

test("a replacement starts with no leases, and releasing an old one does not touch it", async () => {
  await bench.register("p1");
  const old = await bench.granted();
  await bench.fleet.upsert(fleetEntry({ uid: "p1", name: "p1", draining: true }), 2);
  await bench.register("p1", { incarnation: 2 }, 2);
  expect((await bench.granted()).member).toBe("p1:2");
  await bench.store.release(old.id, anybody);
  expect(await bench.acquire()).toEqual({ outcome: "nothing-free" });
});

test("a proxy that comes back while its lease runs still counts it", async () => {
  await bench.register("p1");
  const lease = await bench.granted();
  await bench.fleet.remove(member("p1", 1), 2);
  await bench.register("p1", {}, 3);
  expect(await bench.store.read(lease.id)).toMatchObject({ state: "active" });
  expect(await bench.acquire()).toEqual({ outcome: "nothing-free" });
  await bench.expire(lease);
  expect(await bench.acquire()).toMatchObject({ outcome: "granted" });
});

test("a proxy that comes back after its lease ended is free", async () => {
  await bench.register("p1");
  const lease = await bench.granted();
  await bench.fleet.remove(member("p1", 1), 2);
  await bench.store.release(lease.id, anybody);
  await bench.register("p1", {}, 3);
  expect(await bench.acquire()).toMatchObject({ outcome: "granted" });
});

test("a lease that ends after its proxy was forgotten brings nothing of it back", async () => {
  await bench.register("p1");
  const lease = await bench.granted();
  await bench.fleet.remove(member("p1", 1), 2);
  await bench.redis.del(keys.record(member("p1", 1))); // as when the tombstone's time is over
  await bench.store.release(lease.id, anybody);
  expect(await bench.redis.exists(keys.record(member("p1", 1)))).toBe(0);
});

test("a free set that is wrong grants nothing and is put right", async () => {
  const free = keys.free("crawl|lab||");
  await bench.register("full");
  await bench.granted();
  await bench.register("ill", { seed: { ...seed, healthy: false } });
  await bench.register("leaving", { draining: true });
  await bench.register("moved", { zone: "elsewhere", max: 0 });
  await bench.redis.zadd(free, 0, "full:1", 0, "ill:1", 0, "leaving:1", 0, "moved:1", 0, "gone:1");
  expect(await bench.acquire()).toEqual({ outcome: "nothing-free" });
  expect(await bench.redis.zrange(free, "0", "-1")).toEqual([]);
});

test("a capacity that shrinks below what is leased refuses until enough has ended", async () => {
  await bench.register("p1", { max: 3 });
  const leases = [await bench.granted(), await bench.granted(), await bench.granted()];
  await bench.register("p1", { max: 1 }, 2);
  for (const { id } of leases) {
    expect(await bench.acquire()).toEqual({ outcome: "nothing-free" });
    await bench.store.release(id, anybody);
  }
  expect(await bench.acquire()).toMatchObject({ outcome: "granted" });
});
