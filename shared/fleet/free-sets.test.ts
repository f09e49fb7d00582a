import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
import { bucket, keys, member } from "#shared/model/keys.ts";
import { fleetEntry } from "#test/fakes/fleet-entry.ts";
import { startRedis } from "#test/redis.ts";
import { Fleet } from "./fleet.ts";
import { ProbeSchedule } from "./probe-schedule.ts";

const server = await startRedis();
const redis = new Redis(server.url);
const fleet = new Fleet({ redis });
const schedule = new ProbeSchedule({ redis, onUnreadable: (error) => expect.unreachable(error.message) });

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const uids = ["a", "b", "c", "d", "e"] as const;
const good = { ok: true, latencyMs: 12, reason: "Answered", message: "It answered." };
const bad = { ok: false, latencyMs: 12, reason: "Timeout", message: "It did not answer." };

test("after any sequence of writes, probes, leases and removals the free sets are what the records say", async () => {
  const roll = seededRandom(20_261_201);
  // A name may go to another uid: the object was made anew. Whoever writes then first drives out what the old one left.
  const nameOf = (uid: string) => (uid === "d" || uid === "e" ? "shared" : uid);
  const pick = <T>(choices: readonly [T, ...T[]]): T => choices[Math.floor(roll() * choices.length)] ?? choices[0];
  let fence = 1;
  const randomEntry = () => {
    const uid = pick(uids);
    return fleetEntry({
      uid,
      name: nameOf(uid),
      incarnation: pick<number>([1, 2]),
      zone: pick(["z1", "z2"]),
      host: pick(["127.0.0.2", "127.0.0.2", "127.0.0.3"]),
      max: pick([0, 1, 2]),
      draining: roll() < 0.3,
      ...(roll() < 0.5 ? { seed: { healthy: roll() < 0.7, message: "", at: new Date(0) } } : {}),
    });
  };
  const randomRecord = async () => {
    const { records } = await fleet.list({});
    return records[Math.floor(roll() * records.length)];
  };
  const upsert = async () => {
    const entry = randomEntry();
    if (nameOf(entry.uid) === "shared")
      await fleet.keepOnly("crawl/shared", member(entry.uid, entry.incarnation), [], (fence += 1));
    await fleet.upsert(entry, roll() < 0.9 ? (fence += 1) : fence - 3);
  };
  const remove = () => fleet.remove(member(pick(uids), pick<number>([1, 2])), (fence += 1));
  const removeByName = () => fleet.removeByName(`crawl/${nameOf(pick(uids))}`, (fence += 1));
  const keepOnly = () => {
    const uid = pick(uids);
    return fleet.keepOnly(`crawl/${nameOf(uid)}`, member(uid, pick<number>([1, 2])), [], (fence += 1));
  };
  const amend = () => fleet.amend(randomEntry(), (fence += 1));
  const probe = async () => {
    const record = await randomRecord();
    const result = roll() < 0.6 ? good : bad;
    if (record) await schedule.recordProbe({ member: member(record.uid, record.incarnation), record }, result);
  };
  // What the lease scripts do, as far as a record shows it: count, and move the membership.
  const lease = async () => {
    const record = await randomRecord();
    if (!record) return;
    const id = member(record.uid, record.incarnation);
    const leases = Math.floor(roll() * (record.max + 1));
    await redis.hset(keys.record(id), "leases", leases, "rank", leases * 10);
    const grantable = record.healthy === true && !record.draining && leases < record.max;
    if (grantable) await redis.zadd(keys.free(record.bucket), leases * 10, id);
    else await redis.zrem(keys.free(record.bucket), id);
  };
  for (let step = 0; step < 1_500; step += 1) {
    await pick([upsert, upsert, upsert, amend, probe, probe, probe, lease, remove, removeByName, keepOnly])();
    if (step % 10 === 0) await expectIndexesMatchRecords();
  }
  await expectIndexesMatchRecords();
});

/** Works every index out anew from the records alone. */
async function expectIndexesMatchRecords(): Promise<void> {
  const { records } = await fleet.list({});
  const wanted = new Map<string, Record<string, number>>();
  const newest = new Map<string, number>();
  for (const record of records) {
    const id = member(record.uid, record.incarnation);
    const name = `${record.namespace}/${record.name}`;
    newest.set(name, Math.max(newest.get(name) ?? 0, record.incarnation));
    if (record.healthy !== true || record.draining || record.leases >= record.max) continue;
    wanted.set(record.bucket, { ...wanted.get(record.bucket), [id]: record.rank });
  }
  for (const name of ["z1", "z2"].map((zone) => bucket({ namespace: "crawl", provider: "lab", region: "", zone }))) {
    const flat = await redis.zrange(keys.free(name), "0", "-1", "WITHSCORES");
    const actual: Record<string, number> = {};
    for (let at = 0; at < flat.length; at += 2) actual[flat[at] ?? ""] = Number(flat[at + 1]);
    expect(actual).toEqual(wanted.get(name) ?? {});
  }
  const perBucket = Map.groupBy(records, (record) => record.bucket);
  const counts = Object.fromEntries([...perBucket].map(([name, inIt]) => [name, String(inIt.length)]));
  expect(await redis.hgetall(keys.buckets)).toEqual(counts);
  const members = records.map((record) => member(record.uid, record.incarnation)).toSorted();
  expect((await redis.zrange(keys.due("lab"), "0", "-1")).toSorted()).toEqual(members);
  expect((await redis.hkeys(keys.members)).toSorted()).toEqual(members);
  for (const [name, incarnation] of newest) expect(await fleet.readByName(name)).toMatchObject({ incarnation });
  expect(await fleet.names()).toEqual(new Set(newest.keys()));
}

/** Mulberry32: the same sequence every time, so that a failure can be repeated. */
function seededRandom(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
