import type { Queue } from "bullmq";

export interface QueueDepth {
  /** Ready to run now. */
  waiting: number;
  /** Retries and timers that are not due yet. */
  delayed: number;
  active: number;
  /** How long the oldest waiting job has been due; 0 when nothing waits. */
  oldestAgeSeconds: number;
  paused: boolean;
}

/** Reads how full a queue is. */
export async function readDepth(queue: Queue, now: () => number = Date.now): Promise<QueueDepth> {
  const [counts, [oldest], paused] = await Promise.all([
    queue.getJobCounts("waiting", "delayed", "active"),
    queue.getJobs(["waiting"], 0, 0, true),
    queue.isPaused(),
  ]);
  const { waiting = 0, delayed = 0, active = 0 } = counts;
  const dueAt = oldest === undefined ? undefined : oldest.timestamp + (oldest.opts.delay ?? 0);
  const oldestAgeSeconds = dueAt === undefined ? 0 : Math.max(0, now() - dueAt) / 1_000;
  return { waiting, delayed, active, oldestAgeSeconds, paused };
}
