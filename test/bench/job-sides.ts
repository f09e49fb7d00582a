import { Queue, Worker } from "bullmq";
import { createConsumer } from "#shared/jobs/consumer.ts";
import { createProducer } from "#shared/jobs/producer.ts";
import type { QueueRef } from "#shared/jobs/queue-name.ts";
import type { RedisClient } from "#shared/redis/connect.ts";

/** One of the two that are compared. */
export interface JobSide {
  addOne: (key: string) => Promise<unknown>;
  addMany: (keys: readonly string[]) => Promise<unknown>;
  /** Starts a worker whose handler does nothing but call `onJob`; the answer stops it. */
  consume: (onJob: () => void) => Promise<() => Promise<void>>;
  close: () => Promise<void>;
}

const concurrency = 50;

/** The ceiling: BullMQ alone. No key runs once at a time here, no event is merged, nothing is fenced. */
export function plainBullmq(redis: RedisClient): JobSide {
  const options = { connection: redis, prefix: "{bench}" };
  const queue = new Queue("plain", options);
  const job = (key: string) => ({ name: "run", data: { v: 1, key }, opts: { removeOnComplete: true } });
  return {
    addOne: (key) => {
      const { name, data, opts } = job(key);
      return queue.add(name, data, opts);
    },
    addMany: (keys) => queue.addBulk(keys.map(job)),
    async consume(onJob) {
      const worker = new Worker("plain", async () => onJob(), { ...options, concurrency });
      // Without a listener an error of the connection would end the process.
      worker.on("error", (error) => process.stderr.write(`${error.message}\n`));
      await worker.waitUntilReady();
      return () => worker.close();
    },
    close: () => queue.close(),
  };
}

/** Ours: the producer and the consumer that the product uses. */
export function ourJobs(redis: RedisClient): JobSide {
  const lab: QueueRef = { fn: "reconcile", provider: "lab" };
  const log = {
    debug: () => undefined,
    info: () => undefined,
    warn: (_fields: object, message: string) => process.stderr.write(`${message}\n`),
  };
  const producer = createProducer({ redis, log });
  const backoff = { baseMs: 1_000, maxMs: 60_000, slowMs: 60_000, permanentMs: 600_000 };
  return {
    addOne: (key) => producer.enqueue(lab, key),
    addMany: (keys) =>
      producer.enqueueMany(
        lab,
        keys.map((key) => ({ key })),
      ),
    async consume(onJob) {
      const handler = async (): Promise<void> => onJob();
      const consumer = createConsumer({ redis, queue: lab, concurrency, handler, backoff, log });
      await consumer.ready();
      return () => consumer.close();
    },
    close: () => producer.close(),
  };
}
