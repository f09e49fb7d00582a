import type { Queue } from "bullmq";
import type { RedisClient } from "#shared/redis/connect.ts";
import { eventJob, laterJob, onlyLaterJob } from "./added-job.ts";
import { KeyState } from "./key-state.ts";
import type { Enqueued } from "./payload.ts";
import type { JobFunction } from "./queue-name.ts";

/** BullMQ sends one bulk as one pipeline; this many keeps its memory and Redis's pause small. */
const bulkSize = 500;

/** Adds events for several keys. Counted first, added second: see `KeyState.countEvent`. */
export async function addEvents(deps: {
  redis: RedisClient;
  queue: Queue;
  fn: JobFunction;
  items: readonly Enqueued[];
}): Promise<void> {
  for (const some of chunks(deps.items)) {
    // One by one, not as a pipeline: the hashes lie on different slots of a cluster. ioredis sends them together anyway.
    await Promise.all(some.map((item) => new KeyState(deps.redis, deps.fn, item.key).countEvent()));
    await deps.queue.addBulk(some.map(eventJob));
  }
}

/** Sets timers that will add an event. A pending timer that fires at that time or earlier covers the new one. */
export async function addTimers(
  queue: Queue,
  items: readonly (Enqueued & { delayMs: number })[],
  now: () => number = Date.now,
): Promise<void> {
  for (const some of chunks(items)) {
    const jobs = some.map((item) => ({ item, job: onlyLaterJob(item, item.delayMs), dueAt: now() + item.delayMs }));
    const added = await queue.addBulk(jobs.map(({ job }) => job));
    await Promise.all(
      jobs.map(async ({ item, job, dueAt }, index) => {
        // BullMQ answers with the id of the pending job when it dropped ours.
        const pending = added[index]?.id;
        if (pending === undefined || pending === job.opts.jobId || (await covers(queue, pending, dueAt))) return;
        // A second timer, rather than moving the pending one: two callers that move it could both be too late.
        const timer = laterJob(item, item.delayMs);
        await queue.add(timer.name, timer.data, timer.opts);
      }),
    );
  }
}

/** Will this timer still fire, and not later than `dueAt`? */
async function covers(queue: Queue, timerId: string, dueAt: number): Promise<boolean> {
  const state = await queue.getJobState(timerId);
  // While active it may have added its event already, before whatever our caller saw happened.
  if (state !== "delayed" && state !== "waiting") return false;
  const timer = await queue.getJob(timerId);
  // Gone: it fired after we asked for its state, which is late enough.
  return timer === undefined || timer.timestamp + (timer.opts.delay ?? 0) <= dueAt;
}

function* chunks<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += bulkSize) yield items.slice(at, at + bulkSize);
}
