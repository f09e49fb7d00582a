import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { Fleet } from "#shared/fleet/fleet.ts";
import type { FleetEntry } from "#shared/fleet/fleet-entry.ts";
import { ProbeSchedule } from "#shared/fleet/probe-schedule.ts";
import { keys, member } from "#shared/model/keys.ts";
import { createLogger } from "#shared/telemetry/logger.ts";
import { fleetEntry } from "#test/fakes/fleet-entry.ts";
import { type RawServer, startRawServer } from "#test/raw-server.ts";
import { startRedis, type TestRedis } from "#test/redis.ts";
import { HealthProbe, type HealthProbeDeps, type ProbeObservation } from "./health-probe.ts";
import type { ProbeTarget } from "./probe.ts";

let server: TestRedis;
let redis: Redis;
let fleet: Fleet;
const running: HealthProbe[] = [];
const servers: RawServer[] = [];

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
  fleet = new Fleet({ redis, random: () => 0 });
});

beforeEach(() => redis.flushall());

afterEach(async () => {
  for (const each of running.splice(0)) await each.stop();
  for (const each of servers.splice(0)) await each.stop();
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const once = { ...fleetEntry().probe, timeoutSeconds: 1, healthyThreshold: 1, unhealthyThreshold: 1 };
const good = { ok: true, reason: "Answered", message: "It answers.", latencyMs: 250 } as const;

/** Registers proxies of a provider that are due at once, and judged after one probe. */
async function register(provider: string, count: number, overrides: Partial<FleetEntry> = {}): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const name = `${provider}-${n}`;
    await fleet.upsert(fleetEntry({ provider, name, uid: name, probe: once, ...overrides }), 1);
  }
}

/** A loop that runs until the test ends, and all that it tells. */
function start(deps: Partial<HealthProbeDeps> = {}, slots = 200) {
  const told = { observations: new Array<ProbeObservation>(), enqueued: new Array<string>(), log: new Array<string>() };
  const probe = new HealthProbe({
    schedule: new ProbeSchedule({ redis, onUnreadable: (error) => told.log.push(error.message) }),
    settings: { HEALTH_PROBE_CONCURRENCY: slots },
    enqueueReconcile: (provider, key) => {
      told.enqueued.push(`${provider} ${key}`);
      return Promise.resolve();
    },
    onProbe: (observation) => told.observations.push(observation),
    log: createLogger({
      levels: { level: "info", components: {} },
      pretty: false,
      destination: { write: (line) => told.log.push(line) },
    }),
    ...deps,
  });
  running.push(probe);
  probe.start();
  return { ...told, probe };
}

/** Generous: the machine may be busy. */
const eventually = <T>(read: () => T) => expect.poll(read, { timeout: 20_000, interval: 10 });
const healthy = async (provider: string) => (await fleet.counts()).get(provider)?.healthy ?? 0;
const hang = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

async function startBlackHole(): Promise<RawServer> {
  const hole = await startRawServer(() => undefined);
  servers.push(hole);
  return hole;
}

test("every due proxy is probed and judged, metrics see each probe, and a change makes a reconcile", async () => {
  await register("lab", 3);
  const told = start({ probe: () => Promise.resolve(good) });
  await eventually(() => healthy("lab")).toBe(3);
  await eventually(() => told.enqueued.toSorted()).toEqual(["lab crawl/lab-0", "lab crawl/lab-1", "lab crawl/lab-2"]);
  expect(told.observations.toSorted((a, b) => a.proxy.localeCompare(b.proxy))[0]).toEqual({
    provider: "lab",
    proxy: "crawl/lab-0",
    seconds: 0.25,
    ok: true,
    reason: "Answered",
  });
  // The next probe finds nothing new.
  await redis.zadd(keys.due("lab"), 1, member("lab-0", 1));
  await eventually(() => told.observations.length).toBe(4);
  expect(told.enqueued).toHaveLength(3);
});

test("a probe goes to the instance's address with its login, and to the default url where it names none", async () => {
  const credentials = { username: "u", password: "p" };
  await register("lab", 1, { credentials });
  await register("own", 1, { probe: { ...once, url: "https://own.test/", expectedStatus: 204 } });
  const targets: ProbeTarget[] = [];
  const told = start({
    settings: { HEALTH_PROBE_CONCURRENCY: 8, HEALTH_CHECK_URL: "https://default.test/" },
    probe: (target) => {
      targets.push(target);
      return Promise.resolve(good);
    },
  });
  await eventually(() => told.observations.length).toBe(2);
  const address = { host: "127.0.0.2", port: 3128, timeoutMs: 1000 };
  expect(targets).toContainEqual({
    ...address,
    credentials,
    url: "https://default.test/",
    expectedStatus: undefined,
  });
  expect(targets).toContainEqual({
    ...address,
    credentials: undefined,
    url: "https://own.test/",
    expectedStatus: 204,
  });
});

test("a provider whose proxies are black holes gets a quarter of the slots, and the others go on", async () => {
  await register("dark", 30, { host: "127.0.0.66" });
  await register("lab", 40);
  await register("pond", 40);
  const dark = { now: 0, most: 0 };
  start(
    {
      probe: (target, signal) => {
        if (target.host !== "127.0.0.66") return Promise.resolve(good);
        dark.now += 1;
        dark.most = Math.max(dark.most, dark.now);
        return hang(signal);
      },
    },
    8,
  );
  await eventually(() => healthy("lab")).toBe(40);
  await eventually(() => healthy("pond")).toBe(40);
  await eventually(() => dark.now).toBe(2);
  expect(dark.most).toBe(2);
});

test("real black holes cost their own provider its probes, and no socket outlives its probe", async () => {
  const hole = await startBlackHole();
  await register("dark", 4, { host: "127.0.0.1", port: hole.port });
  const told = start({}, 8);
  await eventually(async () => (await fleet.counts()).get("dark")?.unhealthy).toBe(4);
  expect(told.observations.map((each) => each.reason)).toEqual(["Timeout", "Timeout", "Timeout", "Timeout"]);
  await eventually(() => hole.connections()).toEqual({ made: 4, open: 0 });
});

test("what a killed worker took is probed by another, once it is due again", async () => {
  await register("lab", 5);
  const schedule = new ProbeSchedule({ redis, onUnreadable: (error) => expect.unreachable(error.message) });
  expect(await schedule.takeDue("lab", 9)).toHaveLength(5);
  const told = start({ probe: () => Promise.resolve(good) });
  // Six seconds go by, as Redis counts them.
  for (let n = 0; n < 5; n += 1) await redis.zadd(keys.due("lab"), 1, member(`lab-${n}`, 1));
  await eventually(() => healthy("lab")).toBe(5);
  expect(told.observations).toHaveLength(5);
});

test("stopping gives up what is under way, counts none of it, and leaves no socket", async () => {
  const hole = await startBlackHole();
  await register("dark", 3, { host: "127.0.0.1", port: hole.port, probe: { ...once, timeoutSeconds: 60 } });
  const told = start();
  await eventually(() => hole.connections().open).toBe(3);
  await told.probe.stop();
  await eventually(() => hole.connections().open).toBe(0);
  expect(told.observations).toEqual([]);
  expect((await fleet.counts()).get("dark")).toMatchObject({ pending: 3 });
  expect(told.log).toEqual([]);
});

test("a process that stood still longer than a probe may take does not count its result", async () => {
  await register("lab", 1);
  let clock = 0;
  const told = start({
    monotonicMs: () => clock,
    probe: () => {
      clock += 6_001;
      return Promise.resolve({ ok: false, reason: "Timeout", message: "", latencyMs: 6_001 });
    },
  });
  await eventually(() => told.log.join()).toContain("it is not counted");
  expect((await fleet.counts()).get("lab")).toMatchObject({ pending: 1, unhealthy: 0 });
});

test("trouble of our own is logged and not held against the proxy", async () => {
  await register("lab", 1);
  const told = start({
    probe: () => Promise.reject(Object.assign(new Error("too many open files"), { code: "EMFILE" })),
  });
  await eventually(() => told.log.join()).toContain("EMFILE");
  expect((await fleet.counts()).get("lab")).toMatchObject({ pending: 1, unhealthy: 0 });
});

test("a reconcile that could not be enqueued is logged, and the verdict stands", async () => {
  await register("lab", 1);
  const told = start({
    probe: () => Promise.resolve(good),
    enqueueReconcile: () => Promise.reject(new Error("queue is away")),
  });
  await eventually(() => told.log.join()).toContain("queue is away");
  expect(await healthy("lab")).toBe(1);
});

test("when Redis was away the loop goes on", async () => {
  const schedule = new ProbeSchedule({ redis, onUnreadable: (error) => expect.unreachable(error.message) });
  let calls = 0;
  const told = start({
    probe: () => Promise.resolve(good),
    schedule: {
      dueProviders: () => {
        calls += 1;
        return calls === 1 ? Promise.reject(new Error("redis is away")) : schedule.dueProviders();
      },
      takeDue: (provider, limit) => schedule.takeDue(provider, limit),
      recordProbe: (due, result) => schedule.recordProbe(due, result),
    },
  });
  await register("lab", 1);
  await eventually(() => healthy("lab")).toBe(1);
  expect(told.log.join()).toContain("redis is away");
});

test("after Redis was emptied, what is registered again is probed again", async () => {
  await register("lab", 2);
  start({ probe: () => Promise.resolve(good) });
  await eventually(() => healthy("lab")).toBe(2);
  await redis.flushall();
  await register("lab", 2);
  await eventually(() => healthy("lab")).toBe(2);
});
