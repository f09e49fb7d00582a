import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import type { JobRun } from "#shared/jobs/consumer.ts";
import { createStuckKeySweep } from "#shared/jobs/sweep.ts";
import { startRedis, startRedisCluster } from "#test/redis.ts";
import { lab, startJobRig } from "./jobs/rig.ts";

const soon = { timeout: 30_000 };
const timing = { lockMs: 1_000, stalledCheckMs: 200 };
const rested = { waiting: 0, delayed: 0, active: 0 };

/** A worker process, ended with the test. Resolves once it takes jobs. */
async function startChild(url: string, mode: "die" | "fence"): Promise<{ child: ChildProcess; messages: unknown[] }> {
  const child = fork(fileURLToPath(new URL("./jobs/child.ts", import.meta.url)), [url, mode], { execArgv: [] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const messages: unknown[] = [];
  child.on("message", (message) => messages.push(message));
  await expect.poll(() => messages, soon).toContainEqual({ ready: true });
  return { child, messages };
}

async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

test("a key whose worker is killed runs again elsewhere, and an event that came meanwhile is served", async () => {
  const { server, producer, consume } = await startJobRig();
  const { child, messages } = await startChild(server.url, "fence");
  await producer.enqueue(lab, "ns/a");
  await expect.poll(() => messages.length, soon).toBe(2);
  await kill(child);
  await producer.enqueue(lab, "ns/a");
  const runs: JobRun[] = [];
  await consume(async (run) => void runs.push(run), { timing });
  await expect.poll(() => runs.length, soon).toBe(2);
  await expect.poll(() => producer.depth(lab), soon).toMatchObject(rested);
});

test("a worker that was paused for longer than its lock is refused by its fence, and disturbs nobody", async () => {
  const { server, producer, consume, reports } = await startJobRig();
  const { child, messages } = await startChild(server.url, "fence");
  await producer.enqueue(lab, "ns/a");
  await expect.poll(() => messages.length, soon).toBe(2);
  child.kill("SIGSTOP");
  const held = Promise.withResolvers<void>();
  const runs: JobRun[] = [];
  await consume(
    async (run) => {
      runs.push(run);
      await held.promise;
      await run.fence.check();
    },
    { timing: { ...timing, lockMs: 10_000 } },
  );
  await expect.poll(() => runs.length, soon).toBe(1);
  child.kill("SIGCONT");
  await expect.poll(() => messages.length, soon).toBe(3);
  expect(["Superseded", "LockLost"]).toContain(Object.values(Object(messages[2]))[0]);
  expect(messages[1]).toEqual({ begun: expect.any(Number) });
  expect(runs[0]?.fence.token).toBeGreaterThan(Number(Object.values(Object(messages[1]))[0]));
  held.resolve();
  await expect.poll(() => reports, soon).toMatchObject([{ kind: "done" }]);
  await expect.poll(() => producer.depth(lab), soon).toMatchObject(rested);
});

test("a key that kills its worker three times in a row backs off before it runs again", async () => {
  const { server, producer, consume, reports } = await startJobRig();
  await producer.enqueue(lab, "ns/poison");
  for (let death = 1; death <= 3; death += 1) {
    const { child } = await startChild(server.url, "die");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }
  await consume(async () => undefined, { timing });
  await expect
    .poll(() => reports, soon)
    .toMatchObject([
      { kind: "backoff", key: "ns/poison", failure: { class: "Transient", code: "WorkerLost" } },
      { kind: "done", key: "ns/poison" },
    ]);
});

test("Redis killed and restarted with its append-only file loses no key", async () => {
  const { server, redis, producer, consume } = await startJobRig(() => startRedis(["--appendonly", "yes"]));
  const runs = new Map<string, number>();
  const held = Promise.withResolvers<void>();
  await consume(
    async ({ key }) => {
      runs.set(key, (runs.get(key) ?? 0) + 1);
      if (key === "ns/active") await held.promise;
    },
    { concurrency: 1, timing },
  );
  await producer.enqueue(lab, "ns/active");
  await expect.poll(() => runs.get("ns/active"), soon).toBe(1);
  const waiting = Array.from({ length: 20 }, (_, index) => `ns/waiting-${index}`);
  await producer.enqueueMany(
    lab,
    waiting.map((key) => ({ key })),
  );
  await producer.enqueue(lab, "ns/timer", { delayMs: 300 });
  await producer.enqueue(lab, "ns/active");
  await server.crash();
  const during = producer.enqueue(lab, "ns/during");
  await server.restart();
  await during;
  held.resolve();
  const expected = [...waiting, "ns/timer", "ns/during"];
  await expect.poll(() => expected.filter((key) => !runs.has(key)), soon).toEqual([]);
  await expect.poll(() => runs.get("ns/active"), soon).toBeGreaterThan(1);
  await expect.poll(() => producer.depth(lab), soon).toMatchObject(rested);
  expect(await redis.keys("*:lock")).toEqual([]);
});

test("jobs run and are swept on Redis Cluster: no script touches two slots", async () => {
  const { redis, producer, consume, log } = await startJobRig(startRedisCluster);
  const runs: string[] = [];
  await consume(async ({ key, fence, failures }) => {
    await fence.check();
    runs.push(key);
    if (failures === 0) throw new Error("once");
  });
  await producer.enqueueMany(lab, [{ key: "ns/a" }, { key: "ns/b" }, { key: "ns/c", delayMs: 10 }]);
  await expect.poll(() => runs.toSorted(), soon).toEqual(["ns/a", "ns/a", "ns/b", "ns/b", "ns/c", "ns/c"]);
  await redis.set("{ep:q:lab}:reconcile.lab:de:ns/stuck", "gone");
  const sweep = createStuckKeySweep({ redis, producer, log });
  expect([await sweep(), await sweep()]).toEqual([0, 1]);
  await expect.poll(() => runs, soon).toContain("ns/stuck");
});
