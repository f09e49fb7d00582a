import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Fleet } from "#shared/fleet/fleet.ts";
import type { FleetEntry } from "#shared/fleet/fleet-entry.ts";
import { keys, member } from "#shared/model/keys.ts";
import { fleetEntry } from "#test/fakes/fleet-entry.ts";
import { startRedis, type TestRedis } from "#test/redis.ts";
import { Census } from "./census.ts";
import { reasons } from "./counts.ts";
import { Proxies } from "./proxies.ts";

let server: TestRedis;
let redis: Redis;
let now: number;
let census: Census;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
});

beforeEach(async () => {
  await redis.flushall();
  now = 0;
  census = new Census({ redis, monotonicMs: () => now });
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const seed = { healthy: true, message: "It answered.", at: new Date(1000) };

async function register(uid: string, overrides: Partial<FleetEntry> = {}, leases = 0): Promise<void> {
  const entry = fleetEntry({ uid, name: uid, seed, ...overrides });
  await new Fleet({ redis }).upsert(entry, 1);
  await redis.hset(keys.record(member(uid, entry.incarnation)), "leases", leases);
}

test("every matching proxy counts for the first reason that fits, and the reasons add up", async () => {
  await register("full-1", {}, 1);
  await register("full-2", { max: 3 }, 3);
  await register("never", { max: 0 });
  await register("unhealthy", { seed: { ...seed, healthy: false } });
  await register("new", { seed: undefined });
  await register("unhealthy-and-draining", { seed: undefined, draining: true });
  await register("draining-and-full", { draining: true }, 1);
  await register("elsewhere", { provider: "other" });
  await register("unlabelled", { labels: { tier: "silver" } }, 1);
  const counts = await census.counts({ provider: "lab" }, undefined);
  expect(counts).toMatchObject({ total: 9, matching: 8, full: 4, unhealthy: 3, draining: 1, excluded: 0 });
  expect(reasons.reduce((sum, reason) => sum + counts[reason], 0)).toBe(counts.matching);
  expect(await census.counts({ labels: { tier: "silver" } }, undefined)).toMatchObject({ matching: 1, full: 1 });
});

test("what is free by now counts as full, so that the reasons of a refusal still add up", async () => {
  await register("free");
  expect(await census.counts({}, undefined)).toMatchObject({ total: 1, matching: 1, full: 1 });
});

test("a caller sees nothing of other namespaces, not even their number", async () => {
  await register("a", { namespace: "mine" });
  await register("b", { namespace: "theirs" });
  expect(await census.counts({}, ["mine"])).toMatchObject({ total: 1, matching: 1 });
});

test("thousands of proxies are each counted once", async () => {
  const records = redis.pipeline();
  for (let i = 0; i < 3_000; i += 1) {
    const id = member(`uid-${i}`, 1);
    const { namespace, name, provider, region, zone } = fleetEntry({ name: `p${i}` });
    records.hset(keys.members, id, `${namespace}/${name}`);
    const state = { max: 1, draining: 0, labels: "{}", bucket: "crawl|lab||" };
    records.hset(keys.record(id), Object.assign(state, { namespace, name, provider, region, zone }));
  }
  await records.exec();
  expect(await census.counts({}, undefined)).toMatchObject({ total: 3_000, matching: 3_000, unhealthy: 3_000 });
});

test("one reading serves a second, then a new one is made", async () => {
  await register("a");
  expect(await census.counts({}, undefined)).toMatchObject({ total: 1 });
  await register("b");
  now = 1_000;
  expect(await census.counts({}, undefined)).toMatchObject({ total: 1 });
  now = 1_001;
  expect(await census.counts({}, undefined)).toMatchObject({ total: 2 });
});

test("a reading that failed is not kept", async () => {
  const lonely = new Redis(server.url, { enableOfflineQueue: false, lazyConnect: true });
  const broken = new Census({ redis: lonely, monotonicMs: () => 0 });
  await expect(broken.counts({}, undefined)).rejects.toMatchObject({ code: "RedisUnavailable" });
  // The refused command made it connect.
  await expect.poll(() => broken.counts({}, undefined).catch(() => "refused")).toMatchObject({ total: 0 });
  lonely.disconnect();
});

test("proxies are listed by name, page by page, without credentials", async () => {
  const credentials = { username: "u", password: "sentinel-password" };
  for (let i = 0; i < 230; i += 1) await register(`p${i}`, { credentials });
  const proxies = new Proxies({ redis, census });
  const names: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await proxies.list({}, cursor);
    expect(page.proxies.length).toBeLessThanOrEqual(100);
    expect(JSON.stringify(page)).not.toContain("sentinel");
    names.push(...page.proxies.map(({ record }) => record.name));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  expect(names).toEqual(Array.from({ length: 230 }, (_, i) => `p${i}`).sort());
});

test("a list of proxies is filtered by namespace, provider and state", async () => {
  await register("free");
  await register("full", {}, 1);
  await register("away", { namespace: "other" });
  await register("cloud", { provider: "gcp" });
  const proxies = new Proxies({ redis, census });
  const list = async (filter: Parameters<Proxies["list"]>[0]) =>
    (await proxies.list(filter, undefined)).proxies.map(({ record }) => record.name);
  expect(await list({})).toEqual(["cloud", "free", "full", "away"]);
  expect(await list({ namespace: "other" })).toEqual(["away"]);
  expect(await list({ provider: "gcp" })).toEqual(["cloud"]);
  expect(await list({ state: "full" })).toEqual(["full"]);
  expect(await list({ namespaces: ["other"] })).toEqual(["away"]);
});

test("one proxy is read by name: its current incarnation, and nothing once it is removed", async () => {
  const proxies = new Proxies({ redis, census });
  await register("p1", { draining: true });
  await register("p1", { incarnation: 2 });
  expect(await proxies.read("crawl", "p1")).toMatchObject({ state: "free", record: { incarnation: 2 } });
  expect(await proxies.read("crawl", "none")).toBeUndefined();
  const fleet = new Fleet({ redis });
  await fleet.removeByName("crawl/p1", 9);
  expect(await proxies.read("crawl", "p1")).toBeUndefined();
});
