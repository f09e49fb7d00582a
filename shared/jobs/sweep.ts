import type { Queue } from "bullmq";
import { Cluster, type Redis } from "ioredis";
import type { RedisClient } from "#shared/redis/connect.ts";
import type { JobLog } from "./job-log.ts";
import { openQueue } from "./open-queue.ts";
import { keyOfDedupId } from "./payload.ts";
import type { Producer } from "./producer.ts";
import { parseQueueMember, type QueueRef, queueMember, queueName } from "./queue-name.ts";

export interface SweepDeps {
  redis: RedisClient;
  producer: Producer;
  log: JobLog;
}

/**
 * Frees keys that no event can start any more: their dedup key names a job that lies in no list (left so by a failover
 * that lost part of a script's writes). One scan of Redis serves all queues. Returns the sweep to call now and then
 * (every minute, by one process); it frees what it saw stuck, by the same job, in two calls in a row, enqueues it, and
 * resolves to the number of keys freed.
 */
export function createStuckKeySweep({ redis, producer, log }: SweepDeps): () => Promise<number> {
  let suspects = new Map<string, string>();
  return async () => {
    const seen = new Map<string, string>();
    const queues = new Map<string, Queue>();
    let freed = 0;
    try {
      for await (const entry of dedupKeys(redis)) {
        const member = queueMember(entry.queue);
        const queue = queues.get(member) ?? openQueue(redis, entry.queue, log);
        queues.set(member, queue);
        const jobId = await redis.get(entry.redisKey);
        if (jobId === null || (await queue.getJobState(jobId)) !== "unknown") continue;
        if (suspects.get(entry.redisKey) !== jobId) seen.set(entry.redisKey, jobId);
        else if (await free(queue, jobId, entry, { producer, log })) freed += 1;
      }
    } finally {
      await Promise.all([...queues.values()].map((queue) => queue.close()));
    }
    suspects = seen;
    return freed;
  };
}

interface DedupKey {
  redisKey: string;
  queue: QueueRef;
  id: string;
}

async function free(
  queue: Queue,
  jobId: string,
  { queue: ref, id }: DedupKey,
  { producer, log }: Pick<SweepDeps, "producer" | "log">,
): Promise<boolean> {
  const job = await queue.getJob(jobId);
  try {
    // Takes the dedup key along if it still names this job. Without a job the next add recovers by itself.
    await job?.remove();
  } catch (error) {
    // Somebody runs it after all.
    log.debug({ queue: queueName(ref), key: id, reason: String(error) }, "key is not stuck any more");
    return false;
  }
  const key = keyOfDedupId(id);
  await producer.enqueue(ref, key);
  log.warn({ queue: queueName(ref), key }, "freed a stuck key");
  return true;
}

async function* dedupKeys(redis: RedisClient): AsyncGenerator<DedupKey> {
  const nodes: Redis[] = redis instanceof Cluster ? redis.nodes("master") : [redis];
  for (const node of nodes) {
    const pages: AsyncIterable<string[]> = node.scanStream({ match: "{ep:q*}:*:de:*", count: 1_000 });
    for await (const page of pages) {
      for (const redisKey of page) {
        const at = redisKey.indexOf(":de:");
        const queue = parseQueueMember(redisKey.slice(0, at));
        if (queue !== undefined) yield { redisKey, queue, id: redisKey.slice(at + ":de:".length) };
      }
    }
  }
}
