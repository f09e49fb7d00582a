import { setImmediate as immediate } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import type { EnqueueItem } from "#shared/jobs/producer.ts";
import { type QueueRef, queueName } from "#shared/jobs/queue-name.ts";
import { createLogger } from "#shared/telemetry/logger.ts";
import { makeProxy } from "#test/fixtures/proxy.ts";
import { type ProxyHandlers, type SecretHandlers, Watcher } from "./watcher.ts";

const log = createLogger({ levels: { level: "silent", components: {} }, pretty: false });

/** A watcher on an emptied Redis that is a few variables, and on a watch that the test plays. */
function setUp(options: { registered?: string[]; onJobs?: (redis: FakeRedis) => void } = {}) {
  const redis: FakeRedis = { jobs: [], epoch: null, filling: undefined, broken: false };
  const watching = Promise.withResolvers<ProxyHandlers>();
  const watchingSecrets = Promise.withResolvers<SecretHandlers>();
  const add = (queue: QueueRef, items: readonly EnqueueItem[]): Promise<void> => {
    if (queue.fn !== "reconcile" || items.length === 0) return Promise.resolve();
    if (redis.broken) return Promise.reject(new Error("Redis is away"));
    redis.jobs.push(...items.map(({ key }) => `${queueName(queue)} ${key}`));
    options.onJobs?.(redis);
    return Promise.resolve();
  };
  const watcher = new Watcher({
    settings: { RESYNC_SECONDS: 600 },
    producer: { enqueue: (queue, key) => add(queue, [{ key }]), enqueueMany: add },
    fleet: fakeFleet(redis, options.registered ?? []),
    sweepStuckKeys: () => Promise.resolve(0),
    watchProxies: async (handlers, signal) => {
      watching.resolve(handlers);
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    },
    watchSecrets: async (handlers, signal) => {
      watchingSecrets.resolve(handlers);
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    },
    log,
  });
  watcher.start();
  onTestFinished(() => watcher.stop());
  return { watcher, redis, handlers: watching.promise, secrets: watchingSecrets.promise };
}

interface FakeRedis {
  jobs: string[];
  epoch: string | null;
  filling: string | undefined;
  broken: boolean;
}

function fakeFleet(redis: FakeRedis, registered: string[]) {
  return {
    names: () => Promise.resolve(new Set(registered)),
    epoch: () => Promise.resolve(redis.epoch),
    beginEpoch: (id: string) => {
      redis.filling = id;
      return Promise.resolve();
    },
    finishEpoch: (id: string) => {
      const isMine = redis.filling === id;
      if (isMine) redis.epoch = id;
      return Promise.resolve(isMine);
    },
  };
}

test("a changed provider whose Proxies could not be enqueued is looked at when Redis takes them again", async () => {
  const { watcher, redis, handlers } = setUp();
  await (await handlers).onSet(makeProxy());
  redis.broken = true;
  await watcher.setProviders(["lab"], ["lab"]);
  expect(redis.jobs).toEqual(["reconcile crawl/p1"]);
  redis.broken = false;
  await expect.poll(() => redis.jobs, { timeout: 5_000 }).toContain("reconcile.lab crawl/p1");
});

test("before every Proxy was listed, no registered name is taken for one that no Proxy owns", async () => {
  const { watcher, redis, handlers } = setUp({ registered: ["crawl/p1", "crawl/ghost"] });
  await watcher.setProviders(["lab"], ["lab"]);
  const { onSet, onSynced } = await handlers;
  await immediate(); // whatever would run at once has run
  await onSet(makeProxy());
  onSynced();
  await expect.poll(() => redis.epoch).not.toBeNull();
  expect(new Set(redis.jobs)).toEqual(new Set(["reconcile.lab crawl/p1", "reconcile crawl/ghost"]));
});

test("Redis that is emptied while it is filled gets no epoch, so that the next look fills it again", async () => {
  let flushes = 0;
  const { watcher, redis, handlers } = setUp({
    onJobs: (emptied) => {
      if (flushes > 0 || emptied.filling === undefined) return;
      flushes += 1;
      emptied.filling = undefined;
    },
  });
  const { onSet, onSynced } = await handlers;
  await onSet(makeProxy());
  onSynced();
  await expect.poll(() => flushes).toBe(1);
  await watcher.stop();
  expect(redis.epoch).toBeNull();
});

test("a Secret is news once the first list of them is through", async () => {
  const { redis, handlers, secrets } = setUp();
  await (await handlers).onSet(makeProxy({ spec: { auth: { secretRef: { name: "login" } } } }));
  const { onTouched, onSynced } = await secrets;
  await onTouched("crawl/login");
  expect(redis.jobs).toHaveLength(1);
  onSynced();
  await onTouched("crawl/login");
  expect(redis.jobs).toHaveLength(2);
});

test("a watcher that stops before the first list is through ends", async () => {
  const { watcher, redis } = setUp();
  await watcher.stop();
  expect(redis.jobs).toEqual([]);
});
