import type { Queue } from "bullmq";
import { keys } from "#shared/model/keys.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import { type QueueDepth, readDepth } from "./depth.ts";
import { addEvents, addTimers } from "./enqueue.ts";
import type { JobLog } from "./job-log.ts";
import { openQueue } from "./open-queue.ts";
import { type Enqueued, parsePayload } from "./payload.ts";
import { type QueueRef, queueMember } from "./queue-name.ts";

export interface EnqueueItem extends Enqueued {
  /**
   * Absent or 0: now, and a retry that waits for the key is pulled forward. Otherwise by then at the latest; with
   * `givesWay`, a retry that waits then stays where it is.
   */
  delayMs?: number;
}

export interface Producer {
  /**
   * Makes the key run once from now on (an event while it runs means one more run); with `delayMs` by then at the
   * latest. Doing it twice does no harm. Rejects as Redis does; a client that waits for Redis makes it wait, too.
   */
  enqueue(queue: QueueRef, key: string, options?: Omit<EnqueueItem, "key">): Promise<void>;
  /** The same for many keys of one queue, in few round trips. On a rejection some may have been added. */
  enqueueMany(queue: QueueRef, items: readonly EnqueueItem[]): Promise<void>;
  depth(queue: QueueRef): Promise<QueueDepth>;
  /** Leaves the Redis connection open. */
  close(): Promise<void>;
}

export interface ProducerDeps {
  /** Shared with whatever else the process does. */
  redis: RedisClient;
  log?: JobLog;
}

/** How often a producer renews a queue's entry in `keys.queues`, which an emptied Redis loses. */
const registerEveryMs = 30_000;

/** The only way to enqueue. One per process is enough. */
export function createProducer({ redis, log }: ProducerDeps): Producer {
  const opened = new Map<string, { queue: Queue; registeredAt: number }>();

  const open = (ref: QueueRef): { queue: Queue; registeredAt: number } => {
    const member = queueMember(ref);
    const entry = opened.get(member) ?? { queue: openQueue(redis, ref, log), registeredAt: -Infinity };
    opened.set(member, entry);
    return entry;
  };

  const register = async (ref: QueueRef): Promise<void> => {
    const entry = open(ref);
    if (performance.now() - entry.registeredAt < registerEveryMs) return;
    await redis.sadd(keys.queues, queueMember(ref));
    entry.registeredAt = performance.now();
  };

  const enqueueMany = async (ref: QueueRef, items: readonly EnqueueItem[]): Promise<void> => {
    if (items.length === 0) return;
    for (const { key } of items) {
      // Here, where the caller sees it: the consumer could only drop it.
      if (parsePayload({ v: 1, key }) === undefined) throw new RangeError(`not a job key: ${JSON.stringify(key)}`);
    }
    await register(ref);
    const { queue } = open(ref);
    const isDue = ({ delayMs = 0, givesWay }: EnqueueItem): boolean => !(delayMs > 0) && givesWay === undefined;
    await addEvents({ redis, queue, fn: ref.fn, items: items.filter(isDue) });
    const timers = items.filter((item) => !isDue(item));
    await addTimers(
      queue,
      timers.map(({ delayMs = 0, ...item }) => ({ ...item, delayMs })),
    );
  };

  return {
    enqueueMany,
    enqueue: (ref, key, options = {}) => enqueueMany(ref, [{ ...options, key }]),
    depth: (ref) => readDepth(open(ref).queue),
    async close() {
      await Promise.all([...opened.values()].map(({ queue }) => queue.close()));
      opened.clear();
    },
  };
}
