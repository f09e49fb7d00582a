import { onTestFinished } from "vitest";
import {
  type Consumer,
  type ConsumerDeps,
  createConsumer,
  type Handler,
  type JobReport,
} from "#shared/jobs/consumer.ts";
import { createProducer, type Producer } from "#shared/jobs/producer.ts";
import type { QueueRef } from "#shared/jobs/queue-name.ts";
import { connectRedis, type RedisClient } from "#shared/redis/connect.ts";
import { startRedis, type TestRedis } from "#test/redis.ts";

/** The queue that most tests use. */
export const lab: QueueRef = { fn: "reconcile", provider: "lab" };

export interface JobRig {
  server: TestRedis;
  redis: RedisClient;
  producer: Producer;
  /** What the consumers of this rig reported, in order. */
  reports: JobReport[];
  log: ConsumerDeps["log"];
  /** Starts a consumer of `lab`; ended with the test. */
  consume: (handler: Handler, overrides?: Partial<ConsumerDeps>) => Promise<Consumer>;
}

/** A Redis of the test's own, with a producer and as many consumers as it asks for. All ends with the test. */
export async function startJobRig(start: () => Promise<TestRedis> = startRedis): Promise<JobRig> {
  const server = await start();
  onTestFinished(() => server.stop());
  const redis = connectRedis({ url: server.url, name: "test", whenDown: "wait", onError: () => undefined });
  onTestFinished(() => redis.disconnect());
  const log = { debug: () => undefined, info: () => undefined, warn: () => undefined };
  const producer = createProducer({ redis, log });
  onTestFinished(() => producer.close());
  const reports: JobReport[] = [];
  return {
    server,
    redis,
    producer,
    reports,
    log,
    async consume(handler, overrides = {}) {
      const consumer = createConsumer({
        redis,
        queue: lab,
        concurrency: 10,
        handler,
        log,
        backoff: { baseMs: 20, maxMs: 60_000, slowMs: 60_000, permanentMs: 600_000 },
        onOutcome: (report) => reports.push(report),
        ...overrides,
      });
      onTestFinished(() => consumer.close());
      await consumer.ready();
      return consumer;
    },
  };
}
