import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "#shared/errors/failure.ts";
import { createConsumer, type JobRun } from "#shared/jobs/consumer.ts";
import { connectRedis } from "#shared/redis/connect.ts";
import { StressLog } from "./log.ts";
import { seededRandom } from "./random.ts";

/** One worker process of the stress test. Arguments: url of the queue's Redis, url of the log's Redis, lockMs, seed. */
const [queueUrl = "", logUrl = "", lockMs = "", seed = "0"] = process.argv.slice(2);
const log = new StressLog(logUrl);
const random = seededRandom(Number(seed));
let runs = 0;

async function handler({ key, fence }: JobRun): Promise<{ requeueAfterMs?: number }> {
  const run = `${process.pid}-${(runs += 1)}`;
  await log.write({ ev: "start", key, run, pid: process.pid });
  await sleep(5 + random() * 55);
  const ending = (await log.isDraining()) ? {} : chooseEnding();
  const refusal = await fence.check().then(
    () => undefined,
    (error: unknown) => error,
  );
  const result = refusal !== undefined ? "refused" : ending instanceof Error ? "failed" : "done";
  await log.write({ ev: "end", key, run, result });
  // As every handler must: a run that was stopped half-way and says "done" would lose its event.
  if (refusal !== undefined) throw refusal;
  if (ending instanceof Error) throw ending;
  return ending;
}

function chooseEnding(): Error | { requeueAfterMs?: number } {
  const roll = random();
  if (roll < 0.1) return new Error("boom");
  if (roll < 0.12) return new Failure({ class: "QuotaExceeded", code: "Quota", message: "full" });
  return roll < 0.3 ? { requeueAfterMs: 200 + random() * 3_000 } : {};
}

const consumer = createConsumer({
  redis: connectRedis({ url: queueUrl, name: "stress-worker", whenDown: "wait", onError: () => undefined }),
  queue: { fn: "reconcile", provider: "stress" },
  concurrency: 10,
  handler,
  backoff: { baseMs: 50, maxMs: 2_000, slowMs: 3_000, permanentMs: 3_000 },
  timing: { lockMs: Number(lockMs), stalledCheckMs: 1_000 },
  log: { debug: () => undefined, info: () => undefined, warn: () => undefined },
});
process.on("disconnect", () => process.exit());
process.on("SIGTERM", () => {
  void consumer.close().then(() => process.exit());
});
await consumer.ready();
process.send?.("ready");
