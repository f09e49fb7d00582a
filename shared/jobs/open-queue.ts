import { Queue } from "bullmq";
import { queuePrefix } from "#shared/model/keys.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import type { JobLog } from "./job-log.ts";
import { type QueueRef, queueName } from "./queue-name.ts";

/**
 * BullMQ's handle of one queue over the caller's connection; `close()` leaves the connection open. For this folder, and
 * for the dashboard (`pause`, `resume`, Bull Board). Everything else enqueues through a producer.
 */
export function openQueue(redis: RedisClient, queue: QueueRef, log?: JobLog): Queue {
  const opened = new Queue(queueName(queue), {
    connection: redis,
    prefix: queuePrefix(queue.provider),
    // Nobody reads the stream of events; its default of 10,000 entries a queue is memory for nothing.
    streams: { events: { maxLen: 100 } },
  });
  opened.on("error", (error) => reportError(error, queue, log));
  return opened;
}

/** Every queue and worker repeats the errors of the connection they share, which its owner reports already. */
export function reportError(error: Error, queue: QueueRef, log?: JobLog): void {
  const ofConnection = "syscall" in error || error.message.startsWith("Connection is closed");
  log?.[ofConnection ? "debug" : "warn"]({ queue: queueName(queue), reason: error.message }, "job queue error");
}
