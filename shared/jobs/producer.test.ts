import { expect, test, vi } from "vitest";
import { Failure } from "#shared/errors/failure.ts";
import { keys, queuePrefix } from "#shared/model/keys.ts";
import { lab, startJobRig } from "#test/integration/jobs/rig.ts";
import { openQueue } from "./open-queue.ts";
import { createProducer } from "./producer.ts";

const hour = 3_600_000;
const rested = { waiting: 0, delayed: 0, active: 0 };

test("a thousand events of one key make one waiting job", async () => {
  const { producer } = await startJobRig();
  await Promise.all(Array.from({ length: 1_000 }, () => producer.enqueue(lab, "ns/a")));
  expect(await producer.depth(lab)).toMatchObject({ waiting: 1, delayed: 0, active: 0 });
});

test("many keys are enqueued in one call, each once", async () => {
  const { producer, consume } = await startJobRig();
  const names = Array.from({ length: 1_200 }, (_, index) => `ns/k${index}`);
  await producer.enqueueMany(
    lab,
    [...names, ...names.slice(0, 300)].map((key) => ({ key })),
  );
  expect(await producer.depth(lab)).toMatchObject({ waiting: 1_200 });
  const ran: string[] = [];
  await consume(async ({ key }) => void ran.push(key));
  await vi.waitFor(() => expect(ran.toSorted()).toEqual(names.toSorted()), { timeout: 20_000 });
});

test("a delayed enqueue of a resting key runs it by itself", async () => {
  const { producer, consume } = await startJobRig();
  const handler = vi.fn(async () => undefined);
  await consume(handler);
  await producer.enqueue(lab, "ns/a", { delayMs: 10 });
  await vi.waitFor(() => expect(handler).toHaveBeenCalledTimes(1), { timeout: 20_000 });
});

test("a later enqueue does not push away an earlier one, an earlier one comes first", async () => {
  const { producer, consume } = await startJobRig();
  const handler = vi.fn(async () => undefined);
  await producer.enqueue(lab, "ns/later", { delayMs: 10 });
  await producer.enqueue(lab, "ns/later", { delayMs: hour });
  await producer.enqueue(lab, "ns/earlier", { delayMs: hour });
  await producer.enqueue(lab, "ns/earlier", { delayMs: 10 });
  await consume(handler);
  await vi.waitFor(() => expect(handler).toHaveBeenCalledTimes(2), { timeout: 20_000 });
});

test("a timer that gives way leaves a retry where it is, one that does not pulls it forward", async () => {
  const { producer, consume, reports } = await startJobRig();
  const refused = new Failure({ class: "Permanent", code: "Refused", message: "m" });
  const handler = vi.fn(() => Promise.reject(refused));
  await consume(handler);
  await producer.enqueue(lab, "ns/a");
  await expect.poll(() => reports.length, { timeout: 20_000 }).toBe(1);
  await producer.enqueue(lab, "ns/a", { delayMs: 1, givesWay: true });
  // The retry is left: the timer has fired.
  await expect.poll(async () => (await producer.depth(lab)).delayed, { timeout: 20_000 }).toBe(1);
  await expect.poll(async () => (await producer.depth(lab)).active, { timeout: 20_000 }).toBe(0);
  expect(await producer.depth(lab)).toMatchObject({ waiting: 0, delayed: 1 });
  expect(handler).toHaveBeenCalledTimes(1);
  await producer.enqueue(lab, "ns/a", { delayMs: 1 });
  await expect.poll(() => handler.mock.calls.length, { timeout: 20_000 }).toBe(2);
});

test("a timer that gives way runs a key that rests, and covers no timer that does not", async () => {
  const { producer, consume } = await startJobRig();
  const ran: string[] = [];
  await producer.enqueueMany(lab, [
    { key: "ns/resting", delayMs: 1, givesWay: true },
    { key: "ns/both", delayMs: hour, givesWay: true },
    { key: "ns/late", delayMs: hour, givesWay: true },
  ]);
  await producer.enqueue(lab, "ns/both", { delayMs: 1 });
  await producer.enqueue(lab, "ns/late", { delayMs: 2 * hour });
  await consume(async ({ key }) => void ran.push(key));
  await expect.poll(() => ran.toSorted(), { timeout: 20_000 }).toEqual(["ns/both", "ns/resting"]);
  expect(await producer.depth(lab)).toMatchObject({ waiting: 0, delayed: 3 });
});

test("timers of one key do not pile up, neither pending nor due in a paused queue", async () => {
  const { producer, redis } = await startJobRig();
  const queue = openQueue(redis, lab);
  await queue.pause();
  for (const delayMs of [1, 1, 5, hour, hour]) await producer.enqueue(lab, "ns/a", { delayMs });
  for (const delayMs of [hour, 2 * hour, hour + 1]) await producer.enqueue(lab, "ns/b", { delayMs });
  const { waiting, delayed } = await producer.depth(lab);
  expect(waiting + delayed).toBe(2);
  await queue.close();
});

test("a paused queue keeps its jobs until it is resumed", async () => {
  const { producer, redis, consume } = await startJobRig();
  const queue = openQueue(redis, lab);
  const handler = vi.fn(async () => undefined);
  await consume(handler);
  await queue.pause();
  await producer.enqueue(lab, "ns/a");
  await producer.enqueue({ fn: "reconcile", provider: "other" }, "ns/a");
  const otherRan = vi.fn(async () => undefined);
  await consume(otherRan, { queue: { fn: "reconcile", provider: "other" } });
  await vi.waitFor(() => expect(otherRan).toHaveBeenCalledTimes(1), { timeout: 20_000 });
  expect(await producer.depth(lab)).toMatchObject({ waiting: 1, active: 0, paused: true });
  expect(handler).not.toHaveBeenCalled();
  await queue.resume();
  await vi.waitFor(() => expect(handler).toHaveBeenCalledTimes(1), { timeout: 20_000 });
  await queue.close();
});

test("the depth tells how long the oldest job has been due", async () => {
  const { producer, redis } = await startJobRig();
  expect(await producer.depth(lab)).toEqual({ ...rested, oldestAgeSeconds: 0, paused: false });
  const queue = openQueue(redis, lab);
  const ago = { timestamp: Date.now() - 90_000 };
  await queue.add("run", { v: 1, key: "ns/a" }, ago);
  await queue.add("run", { v: 1, key: "ns/b" }, { timestamp: Date.now() });
  const { waiting, oldestAgeSeconds } = await producer.depth(lab);
  expect(waiting).toBe(2);
  expect(Math.floor(oldestAgeSeconds / 60)).toBe(1);
  await queue.close();
});

test("what cannot be a key is refused where it is enqueued", async () => {
  const { producer, redis } = await startJobRig();
  await expect(producer.enqueue(lab, "")).rejects.toThrow(RangeError);
  await expect(producer.enqueueMany(lab, [{ key: "ns/a" }, { key: "later:x" }])).rejects.toThrow(/later:x/);
  await expect(producer.enqueue(lab, "look:x")).rejects.toThrow(/look:x/);
  expect(await redis.dbsize()).toBe(0);
});

test("closing a producer leaves the connection to its owner", async () => {
  const { redis, log } = await startJobRig();
  const producer = createProducer({ redis, log });
  await producer.enqueue(lab, "ns/a");
  await producer.close();
  expect(await redis.ping()).toBe("PONG");
});

test("a key that has run leaves only its hash behind, which expires", async () => {
  const { producer, redis, reports, consume } = await startJobRig();
  await consume(async ({ failures }) => {
    if (failures === 0) throw new Error("once");
  });
  await producer.enqueue(lab, "ns/a");
  await producer.enqueue(lab, "ns/a", { delayMs: 1 });
  await vi.waitFor(async () => {
    expect(reports.length).toBeGreaterThan(1);
    expect(await producer.depth(lab)).toMatchObject(rested);
  }, 20_000);
  const queueKeys = ["events", "id", "meta", "marker", "stalled-check"].map(
    (k) => `${queuePrefix("lab")}:reconcile.lab:${k}`,
  );
  const left = (await redis.keys("*")).filter((key) => !queueKeys.includes(key));
  expect(left.toSorted()).toEqual(["{ep:job:reconcile:ns/a}", keys.queues]);
  expect(await redis.hkeys("{ep:job:reconcile:ns/a}")).not.toContain("fails");
  expect(await redis.pttl("{ep:job:reconcile:ns/a}")).toBeGreaterThan(0);
});
