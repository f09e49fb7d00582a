import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { keys, type Member, member } from "#shared/model/keys.ts";
import { fleetEntry } from "#test/fakes/fleet-entry.ts";
import { startRedis, type TestRedis } from "#test/redis.ts";
import { Fleet } from "./fleet.ts";
import { type DueProbe, type ProbeResult, ProbeSchedule } from "./probe-schedule.ts";

let server: TestRedis;
let redis: Redis;
let fleet: Fleet;
let schedule: ProbeSchedule;
let unreadable: Error[] = [];

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
  // A half is the middle of the jitter: the interval itself.
  fleet = new Fleet({ redis, random: () => 0.5 });
  schedule = new ProbeSchedule({ redis, random: () => 0.5, onUnreadable: (error) => unreadable.push(error) });
});

beforeEach(async () => {
  unreadable = [];
  await redis.flushall();
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const first = member("uid-1", 1);
const good: ProbeResult = { ok: true, latencyMs: 12.4, reason: "Answered", message: "It answered with status 200." };
const bad: ProbeResult = { ok: false, latencyMs: 5000, reason: "Timeout", message: "It did not answer in time." };
const free = () => redis.zrange(keys.free("crawl|lab||"), "0", "-1");
const makeDue = (id: Member = first, provider = "lab") => redis.zadd(keys.due(provider), 1, id);

/** Milliseconds from now to a member's next probe. */
async function dueIn(id: Member = first, provider = "lab"): Promise<number> {
  return Number(await redis.zscore(keys.due(provider), id)) - Date.now();
}

async function take(): Promise<DueProbe> {
  await makeDue();
  const [taken] = await schedule.takeDue("lab", 1);
  if (taken === undefined) throw new Error("nothing was due");
  return taken;
}

test("a new instance is due within a second, one whose verdict is remembered within its interval", async () => {
  await fleet.upsert(fleetEntry(), 1);
  expect(await dueIn()).toBeLessThanOrEqual(1_500);
  expect(await schedule.dueProviders()).toEqual(["lab"]);
  const seed = { healthy: true, message: "", at: new Date() };
  await fleet.upsert(fleetEntry({ uid: "uid-2", name: "p2", seed }), 1);
  expect(await dueIn(member("uid-2", 1))).toBeGreaterThan(7_000);
});

test("another write leaves the next probe where it is, unless the interval became shorter", async () => {
  await fleet.upsert(fleetEntry(), 1);
  const { probe } = fleetEntry();
  await redis.zadd(keys.due("lab"), Date.now() + 20_000, first);
  await fleet.upsert(fleetEntry(), 2);
  expect(await dueIn()).toBeGreaterThan(15_000);
  await fleet.upsert(fleetEntry({ probe: { ...probe, intervalSeconds: 2 } }), 3);
  expect(await dueIn()).toBeLessThan(4_000);
});

test("what is not due yet is not taken, and the limit holds", async () => {
  for (const uid of ["a", "b", "c"]) await fleet.upsert(fleetEntry({ uid, name: uid }), 1);
  await redis.zadd(keys.due("lab"), Date.now() + 60_000, member("a", 1), 2, member("b", 1), 1, member("c", 1));
  expect((await schedule.takeDue("lab", 1)).map((each) => each.member)).toEqual([member("c", 1)]);
  expect((await schedule.takeDue("lab", 9)).map((each) => each.member)).toEqual([member("b", 1)]);
});

test("a taken probe comes with its record, and is due again by itself after its timeout and 5 s", async () => {
  await fleet.upsert(fleetEntry({ probe: { ...fleetEntry().probe, timeoutSeconds: 30 } }), 1);
  const taken = await take();
  expect(taken).toMatchObject({ member: first, record: { uid: "uid-1", host: "127.0.0.2", port: 3128 } });
  const wait = await dueIn();
  expect(wait).toBeGreaterThan(34_000);
  expect(wait).toBeLessThanOrEqual(36_000);
  expect(await schedule.takeDue("lab", 9)).toEqual([]);
});

test("successes in a row make it healthy and free, failures in a row unhealthy and not free", async () => {
  await fleet.upsert(fleetEntry(), 1);
  const due = await take();
  expect(await schedule.recordProbe(due, good)).toEqual({ recorded: true, changed: false, healthy: undefined });
  expect(await free()).toEqual([]);
  expect(await schedule.recordProbe(due, good)).toEqual({ recorded: true, changed: true, healthy: true });
  expect(await free()).toEqual([first]);
  expect(await schedule.recordProbe(due, bad)).toEqual({ recorded: true, changed: false, healthy: true });
  expect(await schedule.recordProbe(due, bad)).toMatchObject({ changed: false });
  expect(await schedule.recordProbe(due, good)).toMatchObject({ changed: false });
  expect(await schedule.recordProbe(due, bad)).toMatchObject({ changed: false });
  expect(await schedule.recordProbe(due, bad)).toMatchObject({ changed: false, healthy: true });
  expect(await free()).toEqual([first]);
  expect(await schedule.recordProbe(due, bad)).toEqual({ recorded: true, changed: true, healthy: false });
  expect(await free()).toEqual([]);
});

test("a verdict says since when, why, how fast and from which address", async () => {
  await fleet.upsert(fleetEntry({ probe: { ...fleetEntry().probe, healthyThreshold: 1, unhealthyThreshold: 1 } }), 1);
  const due = await take();
  await schedule.recordProbe(due, { ...good, observedIP: "203.0.113.7" });
  const { verdict: healthy } = await fleet.look(first);
  expect(healthy).toEqual({
    healthy: true,
    latencyMs: 12,
    observedIP: "203.0.113.7",
    reason: "Answered",
    message: good.message,
    at: expect.any(Date),
  });
  expect(Math.abs((healthy?.at.getTime() ?? 0) - Date.now())).toBeLessThan(60_000);
  await schedule.recordProbe(due, bad);
  expect((await fleet.look(first)).verdict).toMatchObject({ healthy: false, latencyMs: 12, reason: "Timeout" });
  const refused = { ...bad, reason: "ConnectRefused", message: "Nobody listens." };
  expect(await schedule.recordProbe(due, refused)).toMatchObject({ changed: false });
  expect((await fleet.look(first)).verdict).toMatchObject({ healthy: false, reason: "ConnectRefused" });
});

test("until the first verdict, what the probes fail of is told once, and again when it is something else", async () => {
  await fleet.upsert(fleetEntry(), 1);
  const due = await take();
  expect(await schedule.recordProbe(due, bad)).toEqual({ recorded: true, changed: true, healthy: undefined });
  expect(await fleet.look(first)).toEqual({ registered: true, verdict: undefined, trouble: bad.message });
  expect(await schedule.recordProbe(due, bad)).toMatchObject({ changed: false });
  const refused = { ...bad, reason: "ConnectRefused", message: "Nobody listens." };
  await schedule.recordProbe(due, good);
  expect(await schedule.recordProbe(due, refused)).toMatchObject({ changed: true, healthy: undefined });
  expect((await fleet.look(first)).trouble).toBe("Nobody listens.");
  await schedule.recordProbe(due, bad);
  expect(await schedule.recordProbe(due, bad)).toMatchObject({ changed: true, healthy: false });
  expect((await fleet.look(first)).trouble).toBeUndefined();
});

test("another observed address is a change, no address is none", async () => {
  await fleet.upsert(fleetEntry(), 1);
  const due = await take();
  expect(await schedule.recordProbe(due, { ...good, observedIP: "203.0.113.7" })).toMatchObject({ changed: true });
  await schedule.recordProbe(due, good);
  expect(await schedule.recordProbe(due, { ...good, observedIP: "203.0.113.7" })).toMatchObject({ changed: false });
  expect(await schedule.recordProbe(due, { ...good, observedIP: "203.0.113.8" })).toMatchObject({ changed: true });
});

test("the next probe follows after the interval, give or take a tenth", async () => {
  const seed = { healthy: true, message: "", at: new Date() };
  await fleet.upsert(fleetEntry({ seed }), 1);
  for (const [random, wait] of [
    [0, 13_500],
    [0.5, 15_000],
    [0.999, 16_497],
  ] as const) {
    const jittered = new ProbeSchedule({ redis, random: () => random, onUnreadable: () => undefined });
    await jittered.recordProbe(await take(), bad);
    expect(Math.abs((await dueIn()) - wait)).toBeLessThan(1_200);
  }
});

test("a new instance that answered is probed again soon, one that did not after its interval", async () => {
  await fleet.upsert(fleetEntry(), 1);
  await schedule.recordProbe(await take(), good);
  expect(await dueIn()).toBeLessThan(2_100);
  await schedule.recordProbe(await take(), bad);
  expect(await dueIn()).toBeGreaterThan(14_000);
});

test("a result for what was removed, replaced or moved meanwhile is dropped", async () => {
  await fleet.upsert(fleetEntry(), 1);
  const due = await take();
  await fleet.upsert(fleetEntry({ host: "127.0.0.9" }), 2);
  expect(await schedule.recordProbe(due, good)).toMatchObject({ recorded: false, changed: false });
  const portDue = await take();
  await fleet.upsert(fleetEntry({ host: "127.0.0.9", port: 3129 }), 2);
  expect(await schedule.recordProbe(portDue, good)).toMatchObject({ recorded: false });
  await fleet.upsert(fleetEntry({ host: "127.0.0.9" }), 2);
  const moved = await take();
  await fleet.upsert(fleetEntry({ host: "127.0.0.9", incarnation: 2 }), 3);
  await fleet.remove(first, 3);
  expect(await schedule.recordProbe(moved, good)).toMatchObject({ recorded: false });
  expect(await redis.exists(keys.probe(first), keys.probe(member("uid-1", 2)))).toBe(0);
  expect(await redis.zscore(keys.due("lab"), first)).toBeNull();
});

test("successes at an old address do not count at a new one", async () => {
  await fleet.upsert(fleetEntry(), 1);
  await schedule.recordProbe(await take(), good);
  await fleet.upsert(fleetEntry({ host: "127.0.0.9" }), 2);
  expect(await schedule.recordProbe(await take(), good)).toMatchObject({ recorded: true, healthy: undefined });
});

test("a result that comes after Redis was emptied leaves nothing behind", async () => {
  await fleet.upsert(fleetEntry(), 1);
  const due = await take();
  await redis.flushall();
  expect(await schedule.recordProbe(due, good)).toMatchObject({ recorded: false });
  expect(await redis.dbsize()).toBe(0);
});

test("a provider with nothing left to probe is forgotten", async () => {
  await fleet.upsert(fleetEntry(), 1);
  await fleet.remove(first, 2);
  await schedule.takeDue("lab", 9);
  expect(await schedule.dueProviders()).toEqual([]);
});

test("a member that moved to another provider is due there alone", async () => {
  await fleet.upsert(fleetEntry(), 1);
  await fleet.upsert(fleetEntry({ provider: "other" }), 2);
  expect(await redis.zscore(keys.due("lab"), first)).toBeNull();
  expect(await redis.zscore(keys.due("other"), first)).not.toBeNull();
});

test("a due member without a record, or with one that cannot be read, keeps no other from being probed", async () => {
  await fleet.upsert(fleetEntry(), 1);
  await fleet.upsert(fleetEntry({ uid: "bad", name: "bad" }), 1);
  await redis.hset(keys.record(member("bad", 1)), "port", "many");
  await redis.zadd(keys.due("lab"), 1, member("gone", 1), 1, member("bad", 1), 1, first);
  expect((await schedule.takeDue("lab", 9)).map((each) => each.member)).toEqual([first]);
  expect(unreadable.map(String)).toEqual([expect.stringContaining("bad:1 does not parse: port")]);
  expect(await redis.zscore(keys.due("lab"), member("gone", 1))).toBeNull();
});

test("a probe can be pulled forward, but not again and again", async () => {
  const seed = { healthy: true, message: "", at: new Date() };
  await fleet.upsert(fleetEntry({ seed }), 1);
  expect(await schedule.takeDue("lab", 9)).toEqual([]);
  expect(await schedule.probeSoon(first)).toBe(true);
  expect(await schedule.takeDue("lab", 9)).toHaveLength(1);
  expect(await schedule.probeSoon(first)).toBe(false);
  expect(await schedule.probeSoon(member("nobody", 1))).toBe(false);
  expect(await redis.exists(keys.probe(member("nobody", 1)))).toBe(0);
});
