import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { bucket, keys, member } from "#shared/model/keys.ts";
import { fleetEntry } from "#test/fakes/fleet-entry.ts";
import { startRedis, type TestRedis } from "#test/redis.ts";
import { Fleet } from "./fleet.ts";

let server: TestRedis;
let redis: Redis;
let fleet: Fleet;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
  fleet = new Fleet({ redis });
});

beforeEach(() => redis.flushall());

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const first = member("uid-1", 1);
const second = member("uid-1", 2);
const labBucket = bucket({ namespace: "crawl", provider: "lab", region: "", zone: "" });
const free = () => redis.zrange(keys.free(labBucket), "0", "-1");
const seed = { healthy: true, latencyMs: 12, observedIP: "203.0.113.7", message: "It answered.", at: new Date(1000) };

test("what was written is read back whole", async () => {
  const entry = fleetEntry({
    labels: { team: "a" },
    credentials: { username: "u", password: "p" },
    probe: { ...fleetEntry().probe, url: "https://echo.test/", expectedStatus: 204 },
    region: "eu",
    zone: "eu-1",
  });
  expect(await fleet.upsert(entry, 7)).toEqual({ written: true, record: { verdict: undefined, leases: 0 } });
  expect(await fleet.read(first)).toMatchObject({ ...entry, fence: 7, leases: 0, rank: 0 });
  expect(await fleet.readByName("crawl/p1")).toMatchObject(entry);
  expect(await fleet.names()).toEqual(new Set(["crawl/p1"]));
});

test("nothing registered reads as undefined", async () => {
  expect(await fleet.read(first)).toBeUndefined();
  expect(await fleet.readByName("crawl/p1")).toBeUndefined();
  expect(await fleet.look(first)).toEqual({ registered: false, verdict: undefined, trouble: undefined });
});

test("a write with an older fence changes nothing, one with the same fence repeats", async () => {
  await fleet.upsert(fleetEntry({ max: 3 }), 7);
  expect(await fleet.upsert(fleetEntry({ max: 9 }), 6)).toMatchObject({ written: false });
  expect(await fleet.read(first)).toMatchObject({ max: 3, fence: 7 });
  expect(await fleet.upsert(fleetEntry({ max: 4 }), 7)).toMatchObject({ written: true });
});

test("credentials that were taken away are gone from the record", async () => {
  await fleet.upsert(fleetEntry({ credentials: { username: "u", password: "p" } }), 1);
  await fleet.upsert(fleetEntry(), 2);
  expect((await fleet.read(first))?.credentials).toBeUndefined();
});

test("fields of probes and leases outlive a write, and come back with it", async () => {
  await fleet.upsert(fleetEntry({ seed }), 1);
  await redis.hset(keys.record(first), "leases", 1, "lastGrant", 5, "rank", 9);
  const { record } = await fleet.upsert(fleetEntry({ draining: true }), 2);
  expect(record).toEqual({ verdict: { ...seed, reason: "Remembered" }, leases: 1 });
  expect(await fleet.read(first)).toMatchObject({ leases: 1, lastGrant: 5, rank: 9, healthy: true });
});

test("a seed gives a verdict only where there is none", async () => {
  await fleet.upsert(fleetEntry({ seed: { ...seed, healthy: false } }), 1);
  await fleet.upsert(fleetEntry({ seed }), 2);
  expect((await fleet.look(first)).verdict).toMatchObject({ healthy: false });
  expect(await free()).toEqual([]);
});

test("an address that changed loses its verdict and its place among the free, whatever the seed says", async () => {
  await fleet.upsert(fleetEntry({ seed }), 1);
  expect(await free()).toEqual([first]);
  const { record } = await fleet.upsert(fleetEntry({ seed, host: "127.0.0.3" }), 2);
  expect(record.verdict).toBeUndefined();
  expect(await free()).toEqual([]);
});

test("draining, capacity and bucket move a member in and out of the free sets", async () => {
  await fleet.upsert(fleetEntry({ seed }), 1);
  expect(await free()).toEqual([first]);
  await fleet.upsert(fleetEntry({ draining: true }), 2);
  expect(await free()).toEqual([]);
  await fleet.upsert(fleetEntry({ max: 0 }), 3);
  expect(await free()).toEqual([]);
  await redis.hset(keys.record(first), "leases", 2, "rank", 42);
  await fleet.upsert(fleetEntry({ max: 2 }), 4);
  expect(await free()).toEqual([]);
  await fleet.upsert(fleetEntry({ max: 3 }), 5);
  expect(await redis.zscore(keys.free(labBucket), first)).toBe("42");
  await fleet.upsert(fleetEntry({ max: 3, zone: "z2" }), 6);
  expect(await free()).toEqual([]);
  const moved = bucket({ namespace: "crawl", provider: "lab", region: "", zone: "z2" });
  expect(await redis.zrange(keys.free(moved), "0", "-1")).toEqual([first]);
  expect(await redis.hkeys(keys.buckets)).toEqual([moved]);
});

test("the name belongs to the newest incarnation, also when the retiring one is written later", async () => {
  await fleet.upsert(fleetEntry({ incarnation: 2 }), 1);
  await fleet.upsert(fleetEntry({ incarnation: 1, draining: true }), 1);
  expect(await fleet.readByName("crawl/p1")).toMatchObject({ incarnation: 2 });
  await fleet.remove(second, 2);
  expect(await fleet.readByName("crawl/p1")).toMatchObject({ incarnation: 1 });
});

test("of a name only the current incarnation stays: neither an older one nor another object's", async () => {
  await fleet.upsert(fleetEntry({ uid: "uid-0", incarnation: 9, seed }), 1);
  await fleet.upsert(fleetEntry({ seed }), 1);
  await fleet.upsert(fleetEntry({ incarnation: 2, seed }), 1);
  await fleet.upsert(fleetEntry({ uid: "uid-9", name: "p2", seed }), 1);
  expect(await fleet.keepOnly("crawl/p1", second, [], 2)).toBe(2);
  expect(await free()).toEqual([second, member("uid-9", 1)]);
  expect(await fleet.readByName("crawl/p1")).toMatchObject({ uid: "uid-1", incarnation: 2 });
  expect(await fleet.keepOnly("crawl/p1", undefined, [], 3)).toBe(1);
  expect(await free()).toEqual([member("uid-9", 1)]);
});

test("what is said to be gone gets a tombstone although it is not registered", async () => {
  await fleet.keepOnly("crawl/p1", second, [first], 6);
  expect(await fleet.upsert(fleetEntry(), 5)).toMatchObject({ written: false });
});

test("an amendment leaves alone what the instance was made with, and the verdict on it", async () => {
  const credentials = { username: "u", password: "p" };
  const made = { port: 3128, region: "eu", credentials };
  await fleet.upsert(fleetEntry({ ...made, seed }), 1);
  const { port: _port, region: _region, ...rest } = fleetEntry({ labels: { team: "a" }, max: 3 });
  expect(await fleet.amend(rest, 2)).toMatchObject({ written: true, record: { verdict: { healthy: true } } });
  expect(await fleet.read(first)).toMatchObject({ ...made, labels: { team: "a" }, max: 3, fence: 2 });
  const inEurope = bucket({ namespace: "crawl", provider: "lab", region: "eu", zone: "" });
  expect(await redis.zrange(keys.free(inEurope), "0", "-1")).toEqual([first]);
  expect(await redis.hgetall(keys.buckets)).toEqual({ [inEurope]: "1" });
});

test("an amendment registers nothing that is not registered, a tombstone neither", async () => {
  const { port: _port, region: _region, ...rest } = fleetEntry();
  expect(await fleet.amend(rest, 1)).toMatchObject({ written: false });
  await fleet.remove(first, 2);
  expect(await fleet.amend(rest, 3)).toMatchObject({ written: false });
  expect(await fleet.look(first)).toEqual({ registered: false, verdict: undefined, trouble: undefined });
  expect(await fleet.names()).toEqual(new Set());
});

test("a bucket is known while it has a member, and no longer", async () => {
  await fleet.upsert(fleetEntry({ zone: "z1" }), 1);
  await fleet.upsert(fleetEntry({ uid: "uid-2", name: "p2", zone: "z1" }), 1);
  await fleet.upsert(fleetEntry({ zone: "z1" }), 2);
  await fleet.remove(first, 3);
  await fleet.remove(first, 4);
  const zoned = bucket({ namespace: "crawl", provider: "lab", region: "", zone: "z1" });
  expect(await redis.hgetall(keys.buckets)).toEqual({ [zoned]: "1" });
  await fleet.upsert(fleetEntry({ zone: "z1" }), 5);
  expect(await redis.hgetall(keys.buckets)).toEqual({ [zoned]: "2" });
  await fleet.removeByName("crawl/p1", 6);
  await fleet.removeByName("crawl/p2", 6);
  expect(await redis.exists(keys.buckets)).toBe(0);
});

test("a removed instance is in no index, and a late write does not bring it back", async () => {
  await fleet.upsert(fleetEntry({ seed }), 5);
  await redis.hset(keys.record(first), "leases", 1);
  await redis.hset(keys.probe(first), "failures", 1);
  expect(await fleet.remove(first, 4)).toBe(false);
  expect(await fleet.remove(first, 6)).toBe(true);
  expect(await fleet.upsert(fleetEntry({ seed }), 5)).toMatchObject({ written: false });
  expect((await redis.keys("*")).toSorted()).toEqual([keys.dueProviders, keys.record(first)].toSorted());
  expect(await redis.hgetall(keys.record(first))).toMatchObject({ deleted: "1", fence: "6", leases: "1" });
  expect(await redis.pttl(keys.record(first))).toBeGreaterThan(590_000);
  expect(await fleet.read(first)).toBeUndefined();
});

test("a tombstone is there even when the record never was", async () => {
  await fleet.remove(first, 6);
  expect(await fleet.upsert(fleetEntry(), 5)).toMatchObject({ written: false });
});

test("a newer write after a removal lives, with the leases that still run", async () => {
  await fleet.upsert(fleetEntry({ seed }), 1);
  await redis.hset(keys.record(first), "leases", 1);
  await fleet.remove(first, 2);
  expect(await fleet.upsert(fleetEntry({ seed }), 3)).toMatchObject({ written: true, record: { leases: 1 } });
  expect(await redis.pttl(keys.record(first))).toBe(-1);
  expect(await fleet.read(first)).toMatchObject({ name: "p1" });
  expect(await free()).toEqual([]);
});

test("removal by name takes every incarnation, but none that a newer fence wrote", async () => {
  await fleet.upsert(fleetEntry({ incarnation: 1 }), 1);
  await fleet.upsert(fleetEntry({ incarnation: 2 }), 9);
  expect(await fleet.removeByName("crawl/p1", 5)).toBe(1);
  expect(await fleet.readByName("crawl/p1")).toMatchObject({ incarnation: 2 });
  expect(await fleet.removeByName("crawl/p1", 9)).toBe(1);
  expect(await fleet.names()).toEqual(new Set());
});

test("listing shows every record once it is walked to its end, and only the namespaces asked for", async () => {
  for (let n = 0; n < 600; n += 1) {
    await fleet.upsert(fleetEntry({ namespace: n % 3 === 0 ? "a" : "b", name: `p${n}`, uid: `uid-${n}` }), 1);
  }
  const walk = async (namespaces: string[]) => {
    const names = new Set<string>();
    let cursor: string | undefined = "0";
    let pages = 0;
    while (cursor !== undefined) {
      const page: Awaited<ReturnType<Fleet["list"]>> = await fleet.list({ namespaces, cursor, count: 50 });
      for (const record of page.records) names.add(`${record.namespace}/${record.name}`);
      cursor = page.cursor;
      pages += 1;
    }
    return { names, pages };
  };
  const all = await walk([]);
  expect(all.names.size).toBe(600);
  expect(all.pages).toBeGreaterThan(1);
  const some = await walk(["a"]);
  expect(some.names.size).toBe(200);
  expect([...some.names].every((name) => name.startsWith("a/"))).toBe(true);
});

test("counts add up by provider and health", async () => {
  await fleet.upsert(fleetEntry({ uid: "a", name: "a", seed }), 1);
  await fleet.upsert(fleetEntry({ uid: "b", name: "b", seed: { ...seed, healthy: false }, draining: true }), 1);
  await fleet.upsert(fleetEntry({ uid: "c", name: "c" }), 1);
  await fleet.upsert(fleetEntry({ uid: "d", name: "d", provider: "other" }), 1);
  await redis.hset(keys.record(member("a", 1)), "leases", 1);
  const none = { healthy: 0, unhealthy: 0, pending: 0, draining: 0, leases: 0 };
  expect(await fleet.counts()).toEqual(
    new Map([
      ["lab", { ...none, healthy: 1, unhealthy: 1, pending: 1, draining: 1, leases: 1 }],
      ["other", { ...none, pending: 1 }],
    ]),
  );
});

test("an unreadable record is an error that repeats no secret", async () => {
  await redis.hset(keys.record(first), "uid", "uid-1", "incarnation", 1, "credentials", "hunter2");
  const failure = await fleet.read(first).catch(String);
  expect(failure).toContain("uid-1:1");
  expect(failure).not.toContain("hunter2");
});
