import { setTimeout as delay } from "node:timers/promises";
import type { RedisClient } from "#shared/redis/connect.ts";
import type { Bench, BenchContext } from "./bench.ts";
import { startBenchRedis } from "./bench-redis.ts";
import { type JobSide, ourJobs, plainBullmq } from "./job-sides.ts";
import { type Table, whole } from "./table.ts";

/** The work queue against plain BullMQ. */
export const jobsBench: Bench = {
  summary: "our producer and consumer against plain BullMQ",
  defaultSeconds: 30,
  run: benchJobs,
};

interface Sample {
  count: number;
  ms: number;
}
const steps = ["enqueue, one by one", "enqueueMany(500)", "run a no-op, 50 at once"] as const;
/** One per step. */
type Samples = [Sample, Sample, Sample];

const rounds = 5;
const warmUpMs = 500;
const bulkSize = 500;

async function benchJobs({ seconds, parts }: BenchContext): Promise<Table> {
  const { redis, version } = await startBenchRedis(parts);
  const [plain, ours] = [plainBullmq(redis), ourJobs(redis)];
  parts.add("plain queue", () => plain.close());
  parts.add("our producer", () => ours.close());
  const slotMs = (seconds * 1000) / (rounds * steps.length * 2);
  const measured: { plain: Samples; ours: Samples }[] = [];
  for (const side of [plain, ours]) await measure(side, redis, warmUpMs);
  for (let round = 0; round < rounds; round += 1) {
    measured.push({ plain: await measure(plain, redis, slotMs), ours: await measure(ours, redis, slotMs) });
  }
  return {
    title: "jobs: the work queue against plain BullMQ",
    columns: ["", "BullMQ, jobs/s", "ours, jobs/s", "ratio", "ratio of each round"],
    rows: steps.map((name, step) =>
      toRow(
        name,
        measured.map((each) => [each.plain[step], each.ours[step]]),
      ),
    ),
    redisVersion: version,
    conditions: `${rounds} rounds in turns, ${Math.round(slotMs)} ms each; one process, every job a key of its own`,
  };
}

/** Empties Redis first, so that neither side works beside the other's leavings. */
async function measure(side: JobSide, redis: RedisClient, ms: number): Promise<Samples> {
  await redis.flushall();
  let made = 0;
  const key = (): string => `crawl/p${(made += 1)}`;
  const single = await during(ms, async () => {
    await side.addOne(key());
    return 1;
  });
  const bulk = await during(ms, async () => {
    await side.addMany(Array.from({ length: bulkSize }, key));
    return bulkSize;
  });
  return [single, bulk, await drain(side, made, ms)];
}

async function during(ms: number, step: () => Promise<number>): Promise<Sample> {
  const startedAt = performance.now();
  let count = 0;
  while (performance.now() - startedAt < ms) count += await step();
  return { count, ms: performance.now() - startedAt };
}

/** Runs what was added, until nothing is left or the time is over. */
async function drain(side: JobSide, added: number, ms: number): Promise<Sample> {
  const finished = Promise.withResolvers<void>();
  let count = 0;
  let firstAt: number | undefined;
  let lastAt = 0;
  const stop = await side.consume(() => {
    lastAt = performance.now();
    firstAt ??= lastAt;
    count += 1;
    if (count === added) finished.resolve();
  });
  await Promise.race([finished.promise, delay(ms)]);
  const sample = { count, ms: lastAt - (firstAt ?? lastAt) };
  await stop();
  return sample;
}

function toRow(name: string, pairs: (readonly [Sample | undefined, Sample | undefined])[]): string[] {
  const ceiling = rate(pairs.map(([plain]) => plain));
  const reached = rate(pairs.map(([, ours]) => ours));
  const each = pairs.map(([plain, ours]) => (rate([ours]) / rate([plain])).toFixed(2));
  return [name, whole(ceiling), whole(reached), (reached / ceiling).toFixed(2), each.join(" ")];
}

/** Per second, over all samples. */
function rate(samples: readonly (Sample | undefined)[]): number {
  const sum = (of: (sample: Sample) => number): number =>
    samples.reduce((total, sample) => total + (sample === undefined ? 0 : of(sample)), 0);
  return (sum(({ count }) => count) / sum(({ ms }) => ms)) * 1000;
}
