import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createProducer, type Producer } from "#shared/jobs/producer.ts";
import type { QueueRef } from "#shared/jobs/queue-name.ts";
import { keys, queuePrefix } from "#shared/model/keys.ts";
import { connectRedis, type RedisClient } from "#shared/redis/connect.ts";
import { startRedis, type TestRedis } from "#test/redis.ts";
import { judge, type Verdict } from "./judge.ts";
import { StressLog } from "./log.ts";
import { seededRandom } from "./random.ts";
import { WorkerPool } from "./worker-pool.ts";

export interface StressOptions {
  seconds: number;
  seed: number;
  workers?: number;
  keyCount?: number;
  eventsPerSecond?: number;
  /** Mean time between kills of a worker. */
  killEveryMs?: number;
  /** Also kills the queue's Redis, now and then; its append-only file brings the data back. */
  redisEveryMs?: number;
}

export interface StressResult extends Verdict {
  seed: number;
  kills: number;
  gracefulStops: number;
  redisKills: number;
  /** What the queue still held when it should have come to rest. */
  unfinished: number;
  /** Redis keys that no page documents. */
  leftBehind: string[];
}

const queue: QueueRef = { fn: "reconcile", provider: "stress" };
const lockMs = 3_000;

/**
 * Random events for random keys while worker processes are killed (kill -9, now and then SIGTERM) and replaced, until
 * the time is over; then waits for the queue to come to rest and judges the log. The seed fixes every decision, not the
 * timing.
 */
export async function runStress(options: StressOptions): Promise<StressResult> {
  const [server, logServer] = await Promise.all([startRedis(["--appendonly", "yes"]), startRedis()]);
  const log = new StressLog(logServer.url);
  const redis = connectRedis({ url: server.url, name: "stress", whenDown: "wait", onError: () => undefined });
  const producer = createProducer({ redis });
  const pool = new WorkerPool({ urls: [server.url, logServer.url], log, lockMs, seed: options.seed });
  try {
    await pool.fill(options.workers ?? 4);
    const over = AbortSignal.timeout(options.seconds * 1_000);
    const killing = killWorkers(pool, over, options);
    const redisKilling = killRedis(server, over, options);
    await sendEvents({ producer, log, over }, options);
    const [{ kills, gracefulStops }, redisKills] = await Promise.all([killing, redisKilling]);
    await log.startDraining();
    const unfinished = await comeToRest(producer);
    const leftBehind = await listLeftBehind(redis);
    await pool.empty();
    const verdict = judge(await log.read(), lockMs);
    return { ...verdict, seed: options.seed, kills, gracefulStops, redisKills, unfinished, leftBehind };
  } finally {
    await pool.empty();
    await producer.close();
    redis.disconnect();
    log.close();
    await Promise.all([server.stop(), logServer.stop()]);
  }
}

async function sendEvents(
  { producer, log, over }: { producer: Producer; log: StressLog; over: AbortSignal },
  { seed, keyCount = 200, eventsPerSecond = 150 }: StressOptions,
): Promise<void> {
  const random = seededRandom(seed);
  const pending = new Set<Promise<void>>();
  const beganAt = performance.now();
  for (let sent = 1; !over.aborted; sent += 1) {
    // A few keys get a third of the events, so that many arrive during a run.
    const key = `ns/k${Math.floor(random() * (random() < 0.3 ? 10 : keyCount))}`;
    const delay = random() < 0.1 ? { delayMs: 20 + random() * 1_500 } : {};
    const event = log.write({ ev: "event", key }).then(() => producer.enqueue(queue, key, delay));
    pending.add(event);
    void event.finally(() => pending.delete(event));
    await sleep(Math.max(0, beganAt + (sent * 1_000) / eventsPerSecond - performance.now()));
  }
  await Promise.all(pending);
}

async function killWorkers(
  pool: WorkerPool,
  over: AbortSignal,
  { seed, killEveryMs = 1_500 }: StressOptions,
): Promise<{ kills: number; gracefulStops: number }> {
  const random = seededRandom(seed + 1);
  const counts = { kills: 0, gracefulStops: 0 };
  while (await passes(killEveryMs * (0.5 + random()), over)) {
    const isGraceful = random() < 0.2;
    await pool.replace(random(), isGraceful ? "SIGTERM" : "SIGKILL");
    counts[isGraceful ? "gracefulStops" : "kills"] += 1;
  }
  return counts;
}

async function killRedis(server: TestRedis, over: AbortSignal, { seed, redisEveryMs }: StressOptions): Promise<number> {
  if (redisEveryMs === undefined) return 0;
  const random = seededRandom(seed + 2);
  let kills = 0;
  while (await passes(redisEveryMs * (0.5 + random()), over)) {
    await server.crash();
    await sleep(500 + random() * 1_000);
    await server.restart();
    kills += 1;
  }
  return kills;
}

async function passes(ms: number, over: AbortSignal): Promise<boolean> {
  await sleep(ms, undefined, { signal: over }).catch(() => undefined);
  return !over.aborted;
}

async function comeToRest(producer: Producer): Promise<number> {
  const until = performance.now() + 60_000;
  for (;;) {
    const { waiting, delayed, active } = await producer.depth(queue);
    const unfinished = waiting + delayed + active;
    if (unfinished === 0 || performance.now() > until) return unfinished;
    await sleep(100);
  }
}

/** All keys but those of the queue itself, the list of queues, and the hashes of job keys, which expire. */
async function listLeftBehind(redis: RedisClient): Promise<string[]> {
  const prefix = `${queuePrefix(queue.provider)}:reconcile.stress`;
  const known = new Set(["events", "id", "meta", "marker", "stalled-check"].map((name) => `${prefix}:${name}`));
  const left: string[] = [];
  for (const key of await redis.keys("*")) {
    const expires = key.startsWith("{ep:job:reconcile:ns/k") && (await redis.pttl(key)) > 0;
    if (!expires && !known.has(key) && key !== keys.queues) left.push(key);
  }
  return left;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "30" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
      rate: { type: "string", default: "150" },
      "kill-every-ms": { type: "string", default: "1500" },
      "kill-redis-every-ms": { type: "string" },
    },
  });
  const redisEvery = values["kill-redis-every-ms"];
  console.log(`seed ${values.seed}`);
  const result = await runStress({
    seconds: Number(values.seconds),
    seed: Number(values.seed),
    eventsPerSecond: Number(values.rate),
    killEveryMs: Number(values["kill-every-ms"]),
    ...(redisEvery === undefined ? {} : { redisEveryMs: Number(redisEvery) }),
  });
  console.log(JSON.stringify(result, null, 2));
  const isGood = result.overlaps.length + result.lost.length + result.unfinished + result.leftBehind.length === 0;
  process.exitCode = isGood ? 0 : 1;
}
