import { expect, test } from "vitest";
import { type JobRig, lab, startJobRig } from "#test/integration/jobs/rig.ts";
import { eventJob } from "./added-job.ts";
import { openQueue } from "./open-queue.ts";
import { createStuckKeySweep } from "./sweep.ts";

const soon = { timeout: 20_000 };

/** As a failover that lost half of a script leaves it: the job and its dedup key are there, no list has it. */
async function wedge({ redis }: JobRig, key: string): Promise<void> {
  const queue = openQueue(redis, lab);
  const job = eventJob({ key });
  await queue.add(job.name, job.data, job.opts);
  await redis.lrem(queue.toKey("wait"), 1, job.opts.jobId);
  await queue.close();
}

test("a stuck key is freed on the second look, and runs; its job leaves nothing behind", async () => {
  const rig = await startJobRig();
  const runs: string[] = [];
  await wedge(rig, "ns/stuck");
  await rig.consume(async ({ key }) => void runs.push(key));
  await rig.producer.enqueue(lab, "ns/stuck");
  await rig.producer.enqueue(lab, "ns/other");
  await expect.poll(() => runs, soon).toEqual(["ns/other"]);
  const sweep = createStuckKeySweep(rig);
  expect(await sweep()).toBe(0);
  expect(await sweep()).toBe(1);
  await expect.poll(() => runs, soon).toEqual(["ns/other", "ns/stuck"]);
  expect(await sweep()).toBe(0);
  await expect.poll(() => rig.redis.keys("*:de:*"), soon).toEqual([]);
  expect(await rig.redis.keys("*:j-*")).toEqual([]);
});

test("keys that wait, are delayed, run, or have a timer are left alone", async () => {
  const rig = await startJobRig();
  const held = Promise.withResolvers<void>();
  let runs = 0;
  await rig.consume(
    async ({ key }) => {
      runs += 1;
      if (key === "ns/delayed") return { requeueAfterMs: 3_600_000 };
      await held.promise;
      return undefined;
    },
    { concurrency: 2 },
  );
  await rig.producer.enqueue(lab, "ns/timer", { delayMs: 3_600_000 });
  await rig.producer.enqueue(lab, "ns/delayed");
  await expect.poll(() => rig.reports.length, soon).toBe(1);
  await rig.producer.enqueueMany(lab, [{ key: "ns/active-1" }, { key: "ns/active-2" }, { key: "ns/waiting" }]);
  await expect.poll(() => rig.producer.depth(lab), soon).toMatchObject({ active: 2, waiting: 1, delayed: 2 });
  const sweep = createStuckKeySweep(rig);
  for (let look = 0; look < 3; look += 1) expect(await sweep()).toBe(0);
  expect(await rig.redis.keys("*:de:*")).toHaveLength(5);
  held.resolve();
  await expect.poll(() => rig.reports.length, soon).toBe(4);
  expect(runs).toBe(4);
});

test("a key that got unstuck between two looks is left alone", async () => {
  const rig = await startJobRig();
  await wedge(rig, "ns/stuck");
  const sweep = createStuckKeySweep(rig);
  expect(await sweep()).toBe(0);
  await rig.redis.flushall();
  await wedge(rig, "ns/stuck");
  expect(await sweep()).toBe(0);
  expect(await sweep()).toBe(1);
});

test("a dedup key whose job is gone is recovered, a stuck timer too", async () => {
  const rig = await startJobRig();
  await rig.redis.mset("{ep:q:lab}:reconcile.lab:de:ns/a", "gone", "{ep:q:lab}:reconcile.lab:de:later:ns/b", "gone");
  await rig.redis.set("{ep:q}:of-a-newer-version:de:x", "gone");
  const sweep = createStuckKeySweep(rig);
  await sweep();
  expect(await sweep()).toBe(2);
  const runs: string[] = [];
  await rig.consume(async ({ key }) => void runs.push(key));
  await expect.poll(() => runs.toSorted(), soon).toEqual(["ns/a", "ns/b"]);
});
