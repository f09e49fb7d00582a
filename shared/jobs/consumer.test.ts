import { expect, test } from "vitest";
import { Failure } from "#shared/errors/failure.ts";
import { connectRedis } from "#shared/redis/connect.ts";
import { lab, startJobRig } from "#test/integration/jobs/rig.ts";
import { createConsumer, type JobRun } from "./consumer.ts";
import { openQueue } from "./open-queue.ts";

const hour = 3_600_000;
const soon = { timeout: 20_000 };

/** A handler that the test lets go of, run by run. */
function heldHandler() {
  const runs: JobRun[] = [];
  const releases: (() => void)[] = [];
  let inside = 0;
  let mostInside = 0;
  const handler = async (run: JobRun): Promise<void> => {
    runs.push(run);
    mostInside = Math.max(mostInside, (inside += 1));
    const { promise, resolve } = Promise.withResolvers<void>();
    releases.push(resolve);
    await promise;
    inside -= 1;
  };
  return { handler, runs, release: (at: number) => releases[at]?.(), most: () => mostInside };
}

/** A handler that only its signal ends. */
function hangingHandler() {
  const runs: JobRun[] = [];
  const handler = (run: JobRun): Promise<void> => {
    runs.push(run);
    return new Promise((_, reject) => run.signal.addEventListener("abort", () => reject(run.signal.reason)));
  };
  return { handler, runs };
}

const transient = (): never => {
  throw new Failure({ class: "Transient", code: "Unreachable", message: "no answer" });
};

test("any number of events during a run cause exactly one more, after it", async () => {
  const { producer, consume, reports } = await startJobRig();
  const held = heldHandler();
  await consume(held.handler);
  await producer.enqueue(lab, "ns/a");
  await expect.poll(() => held.runs.length, soon).toBe(1);
  await Promise.all(Array.from({ length: 50 }, () => producer.enqueue(lab, "ns/a")));
  expect(held.runs).toHaveLength(1);
  held.release(0);
  await expect.poll(() => held.runs.length, soon).toBe(2);
  held.release(1);
  await expect.poll(() => reports.length, soon).toBe(2);
  expect(await producer.depth(lab)).toMatchObject({ waiting: 0, delayed: 0, active: 0 });
  expect(held.most()).toBe(1);
});

test("an event pulls a requeued key forward", async () => {
  const { producer, consume, reports } = await startJobRig();
  await consume(async () => ({ requeueAfterMs: hour }));
  await producer.enqueue(lab, "ns/a");
  await expect.poll(() => reports.length, soon).toBe(1);
  await expect.poll(() => producer.depth(lab), soon).toMatchObject({ active: 0, delayed: 1 });
  await producer.enqueue(lab, "ns/a");
  await expect.poll(() => reports.length, soon).toBe(2);
  await expect.poll(() => producer.depth(lab), soon).toMatchObject({ waiting: 0, active: 0, delayed: 1 });
});

test("requeueAfterMs runs the key again by itself, 0 at once", async () => {
  const { producer, consume, reports } = await startJobRig();
  const answers = [{ requeueAfterMs: 0 }, { requeueAfterMs: 5 }, {}];
  await consume(async () => answers.shift());
  await producer.enqueue(lab, "ns/a");
  await expect.poll(() => reports.map(({ kind }) => kind), soon).toEqual(["requeued", "requeued", "done"]);
});

test.each([
  ["asks to run again in an hour", () => ({ requeueAfterMs: hour })],
  ["fails and backs off for an hour", transient],
])("an event during a run that %s is served at once", async (_, end) => {
  const { producer, consume } = await startJobRig();
  const runs: string[] = [];
  await consume(
    async ({ key }) => {
      runs.push(key);
      if (runs.length > 1) return;
      await producer.enqueue(lab, key);
      return end();
    },
    { backoff: { baseMs: hour, maxMs: hour, slowMs: hour, permanentMs: hour } },
  );
  await producer.enqueue(lab, "ns/a");
  await expect.poll(() => runs.length, soon).toBe(2);
});

test("a delayed enqueue during a run does not push away the event that came before it", async () => {
  const { producer, consume } = await startJobRig();
  const runs: string[] = [];
  await consume(async ({ key }) => {
    if (runs.push(key) > 1) return;
    await producer.enqueue(lab, key);
    await producer.enqueue(lab, key, { delayMs: hour });
  });
  await producer.enqueue(lab, "ns/a");
  await expect.poll(() => runs.length, soon).toBe(2);
  expect(await producer.depth(lab)).toMatchObject({ delayed: 1 });
});

test("backoff grows with each failure in a row and starts anew after a success", async () => {
  const { producer, consume, reports } = await startJobRig();
  const failures: number[] = [];
  await consume(
    async (run) => {
      failures.push(run.failures);
      if (failures.length !== 4) transient();
      return { requeueAfterMs: 0 };
    },
    { random: () => 1 },
  );
  await producer.enqueue(lab, "ns/a");
  await expect.poll(() => failures.length, soon).toBeGreaterThanOrEqual(6);
  expect(failures.slice(0, 6)).toEqual([0, 1, 2, 3, 0, 1]);
  expect(reports.slice(0, 5).map(({ delayMs }) => delayMs)).toEqual([20, 40, 80, 0, 20]);
});

test.each([
  ["QuotaExceeded", "slow", 60_000],
  ["Permanent", "permanent", 600_000],
] as const)(
  "%s waits in its own class and does not count as a failure in a row",
  async (failureClass, kind, delayMs) => {
    const { producer, consume, reports } = await startJobRig();
    const failures: number[] = [];
    await consume(async (run) => {
      failures.push(run.failures);
      throw new Failure({ class: failureClass, code: "Code", message: "m" });
    });
    for (const count of [1, 2]) {
      await producer.enqueue(lab, "ns/a");
      await expect.poll(() => reports.length, soon).toBe(count);
      await expect.poll(() => producer.depth(lab), soon).toMatchObject({ active: 0, delayed: 1 });
    }
    expect(reports).toMatchObject([
      { kind, delayMs, key: "ns/a", failure: { code: "Code" } },
      { kind, delayMs },
    ]);
    expect(failures).toEqual([0, 0]);
  },
);

test("the wait that a failure asks for is kept", async () => {
  const { producer, consume, reports } = await startJobRig();
  await consume(async () => {
    throw new Failure({ class: "Transient", code: "Throttled", message: "m", retryAfterMs: 400_000 });
  });
  await producer.enqueue(lab, "ns/a");
  await expect.poll(() => reports, soon).toMatchObject([{ kind: "backoff", delayMs: 400_000 }]);
});

test("the trace context of the enqueuer reaches the handler", async () => {
  const { producer, consume } = await startJobRig();
  const held = heldHandler();
  await consume(held.handler);
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  await producer.enqueue(lab, "ns/a", { traceparent });
  await expect.poll(() => held.runs, soon).toMatchObject([{ key: "ns/a", queue: lab, failures: 0, traceparent }]);
  held.release(0);
});

test("a stopping consumer aborts its runs and puts their keys back for others, uncounted", async () => {
  const { producer, consume, reports } = await startJobRig();
  // With a lock of an hour nobody would get the key by way of a lost lock.
  const timing = { lockMs: hour };
  const first = hangingHandler();
  const leaving = await consume(first.handler, { timing });
  await producer.enqueue(lab, "ns/a");
  await expect.poll(() => first.runs.length, soon).toBe(1);
  const second = hangingHandler();
  await consume(second.handler, { timing });
  await leaving.close();
  expect(first.runs[0]?.signal.reason).toMatchObject({ class: "Transient", code: "ShuttingDown" });
  await expect(first.runs[0]?.fence.check()).rejects.toMatchObject({ code: "ShuttingDown" });
  await expect.poll(() => second.runs.length, soon).toBe(1);
  expect(second.runs[0]?.failures).toBe(0);
  expect(reports).toMatchObject([{ kind: "aborted", delayMs: 0 }]);
});

test("a stop does not wait for a handler that ignores its signal", async () => {
  const { producer, consume } = await startJobRig();
  const held = heldHandler();
  const consumer = await consume(held.handler, { timing: { stopWithinMs: 20 } });
  await producer.enqueue(lab, "ns/a");
  await expect.poll(() => held.runs.length, soon).toBe(1);
  await consumer.close();
  held.release(0);
});

test("a run is aborted when its lock is lost", async () => {
  const { redis, producer, consume } = await startJobRig();
  const { handler, runs } = hangingHandler();
  await consume(handler, { timing: { lockMs: 400 } });
  await producer.enqueue(lab, "ns/a");
  await expect.poll(() => runs.length, soon).toBe(1);
  const locks = await redis.keys("*:lock");
  expect(locks).toHaveLength(1);
  await redis.set(locks[0] ?? "", "of another worker");
  await expect.poll(() => runs[0]?.signal.aborted, soon).toBe(true);
  expect(runs[0]?.signal.reason).toMatchObject({ class: "Transient", code: "LockLost" });
});

test("a run that was overtaken changes nothing and reports itself as superseded", async () => {
  const { producer, consume, reports } = await startJobRig();
  // The same key in two queues: what happens when a Proxy's provider gets configured.
  const unconfigured = { fn: "reconcile" } as const;
  const held = heldHandler();
  await consume(async (run) => {
    await held.handler(run);
    transient();
  });
  await consume(async () => undefined, { queue: unconfigured });
  await producer.enqueue(lab, "ns/a");
  await expect.poll(() => held.runs.length, soon).toBe(1);
  await producer.enqueue(unconfigured, "ns/a");
  await expect.poll(() => reports.length, soon).toBe(1);
  await expect(held.runs[0]?.fence.check()).rejects.toMatchObject({ code: "Superseded" });
  held.release(0);
  await expect.poll(() => reports, soon).toMatchObject([{ kind: "done" }, { kind: "superseded", key: "ns/a" }]);
  await expect.poll(() => producer.depth(lab), soon).toMatchObject({ waiting: 0, delayed: 0, active: 0 });
});

test("garbage is dropped, reported, and does not stop the jobs behind it", async () => {
  const { redis, producer, consume, reports } = await startJobRig();
  const queue = openQueue(redis, lab);
  await queue.add("run", { v: 9, key: "ns/a" }, { deduplication: { id: "ns/a", keepLastIfActive: true } });
  await queue.add("later", "text", { jobId: "unparsable" });
  await redis.hset(queue.toKey("unparsable"), "data", "{not json");
  await redis.lpush(queue.toKey("wait"), "ghost");
  await consume(async () => undefined, { timing: { stalledCheckMs: 50, lockMs: 400 } });
  await expect.poll(() => reports.map(({ kind }) => kind), soon).toEqual(["garbage", "garbage", "garbage"]);
  await producer.enqueue(lab, "ns/a");
  await expect.poll(() => reports.length, soon).toBe(4);
  expect(reports[3]).toMatchObject({ kind: "done", key: "ns/a" });
  await expect.poll(() => producer.depth(lab), soon).toMatchObject({ waiting: 0, delayed: 0, active: 0 });
  await queue.close();
});

test("a Redis that refuses to record how a run ended does not cost the key its next run", async () => {
  const { redis, producer, consume } = await startJobRig();
  const failures: number[] = [];
  await consume(async (run) => {
    failures.push(run.failures);
    if (failures.length > 1) return;
    await redis.config("SET", "maxmemory", "1mb");
    transient();
  });
  await producer.enqueue(lab, "ns/a");
  await expect.poll(() => failures.length, soon).toBe(1);
  await expect.poll(() => redis.set("any", "value").catch(String), soon).toContain("OOM");
  await redis.config("SET", "maxmemory", "0");
  await expect.poll(() => failures.length, soon).toBe(2);
});

test("consumers share the command connection and each open one to wait on", async () => {
  const { redis, consume } = await startJobRig();
  for (const provider of ["a", "b", "c"])
    await consume(async () => undefined, { queue: { fn: "reconcile", provider } });
  const clients = String(await redis.client("LIST"))
    .trim()
    .split("\n");
  expect(clients).toHaveLength(4);
});

test("a connection that gives up while Redis is away is refused", async () => {
  const { server, log } = await startJobRig();
  const redis = connectRedis({ url: server.url, name: "test", whenDown: "fail", onError: () => undefined });
  const backoff = { baseMs: 1, maxMs: 1, slowMs: 1, permanentMs: 1 };
  const deps = { redis, queue: lab, concurrency: 1, handler: async () => undefined, backoff, log };
  expect(() => createConsumer(deps)).toThrow(/whenDown/);
  redis.disconnect();
});
