import { expect, test } from "vitest";
import type { EnqueueItem } from "#shared/jobs/producer.ts";
import { type QueueRef, queueName } from "#shared/jobs/queue-name.ts";
import type { Condition } from "#shared/model/condition.ts";
import { makeProxy } from "#test/fixtures/proxy.ts";
import { readyStatus } from "#test/fixtures/situation.ts";
import { ProxyJobs } from "./proxy-jobs.ts";

function setUp(options: { providers?: string[]; registered?: string[] } = {}) {
  const jobs: string[] = [];
  const delays: number[] = [];
  let broken = false;
  const providers = options.providers ?? ["lab"];
  const add = (queue: QueueRef, items: readonly EnqueueItem[]): Promise<void> => {
    if (broken) return Promise.reject(new Error("Redis is away"));
    for (const { key, delayMs = 0 } of items) {
      jobs.push(`${queueName(queue)} ${key}`);
      delays.push(delayMs);
    }
    return Promise.resolve();
  };
  const watcher = new ProxyJobs({
    producer: { enqueue: (queue, key, extra) => add(queue, [{ ...extra, key }]), enqueueMany: add },
    fleet: { names: () => Promise.resolve(new Set(options.registered)) },
    providerNames: () => providers,
    random: () => 0.5,
  });
  return { watcher, jobs, delays, providers, breakRedis: (value: boolean) => (broken = value) };
}

test("a Proxy is a job of its provider's queue, or of the common one when that is not configured", async () => {
  const { watcher, jobs } = setUp();
  await watcher.seen(makeProxy());
  await watcher.seen(makeProxy({ metadata: { name: "p2" }, spec: { provider: "other" } }));
  expect(jobs).toEqual(["reconcile.lab crawl/p1", "reconcile crawl/p2"]);
});

test("a status that changed makes no job, a spec that changed makes one", async () => {
  const { watcher, jobs } = setUp();
  await watcher.seen(makeProxy());
  await watcher.seen(makeProxy({ metadata: { resourceVersion: "2" }, status: { phase: "Ready" } }));
  expect(jobs).toHaveLength(1);
  await watcher.seen(makeProxy({ metadata: { resourceVersion: "3", generation: 2 } }));
  expect(jobs).toHaveLength(2);
});

test("an event whose job could not be enqueued is not lost: the Proxy is new again when it is next seen", async () => {
  const { watcher, jobs, breakRedis } = setUp();
  breakRedis(true);
  await expect(watcher.seen(makeProxy())).rejects.toThrow("Redis is away");
  breakRedis(false);
  await watcher.seen(makeProxy());
  expect(jobs).toEqual(["reconcile.lab crawl/p1"]);
});

test("a Proxy that went makes one more job", async () => {
  const { watcher, jobs } = setUp();
  await watcher.seen(makeProxy());
  await watcher.gone("crawl/p1");
  await watcher.gone("crawl/p1");
  expect(jobs).toEqual(["reconcile.lab crawl/p1", "reconcile.lab crawl/p1"]);
});

test("a Proxy that went while Redis was away makes its job when it is told again", async () => {
  const { watcher, jobs, breakRedis } = setUp();
  await watcher.seen(makeProxy());
  breakRedis(true);
  await expect(watcher.gone("crawl/p1")).rejects.toThrow("Redis is away");
  breakRedis(false);
  await watcher.gone("crawl/p1");
  expect(jobs).toEqual(["reconcile.lab crawl/p1", "reconcile.lab crawl/p1"]);
});

test("a provider that comes or goes makes a job for each of its Proxies, in the queue that is right then", async () => {
  const { watcher, jobs, delays, providers } = setUp({ providers: [] });
  await watcher.seen(makeProxy());
  await watcher.seen(makeProxy({ metadata: { name: "p2" }, spec: { provider: "other" } }));
  providers.push("lab");
  await watcher.providersChanged(["lab"]);
  // Once more when every process knows: one that did not yet may have passed it on to the wrong queue.
  expect(jobs.slice(2)).toEqual(["reconcile.lab crawl/p1", "reconcile.lab crawl/p1"]);
  expect(delays.slice(2)).toEqual([0, 10_000]);
});

test("a resync looks at every Proxy once, spread over the interval, and at entries that no Proxy owns", async () => {
  const { watcher, jobs, delays } = setUp({ registered: ["crawl/p1", "crawl/ghost"] });
  for (const name of ["p1", "p2", "p3", "p4"]) await watcher.seen(makeProxy({ metadata: { name } }));
  await watcher.resync(4000);
  expect(jobs.slice(4)).toEqual(
    ["p1", "p2", "p3", "p4"].map((name) => `reconcile.lab crawl/${name}`).concat("reconcile crawl/ghost"),
  );
  expect(delays.slice(4)).toEqual([1, 1001, 2001, 3001, 0]);
});

test("of a first list, what looks settled waits its turn, and what does not is a job at once", async () => {
  const { watcher, delays } = setUp();
  const status = readyStatus();
  const firstList = true;
  const reconciling = [...(status.conditions ?? []), conditionOf("Reconciling"), conditionOf("Stalled")];
  await watcher.seen(makeProxy({ status }), { firstList });
  await watcher.seen(makeProxy({ metadata: { name: "p2", generation: 2 }, status }), { firstList });
  await watcher.seen(makeProxy({ metadata: { name: "p3", deletionTimestamp: "2026-12-01T00:00:00Z" }, status }), {
    firstList,
  });
  await watcher.seen(makeProxy({ metadata: { name: "p4" }, status: { ...status, conditions: reconciling } }), {
    firstList,
  });
  await watcher.seen(makeProxy({ metadata: { name: "p5" } }), { firstList });
  await watcher.seen(makeProxy({ metadata: { name: "p6" }, status }));
  expect(delays).toEqual([15_001, 0, 0, 0, 0, 0]);
});

test("a Secret that came, changed or went makes a job for each Proxy that names it, and for no other", async () => {
  const { watcher, jobs } = setUp();
  const auth = { secretRef: { name: "login" } };
  const cloudInit = { secretKeyRef: { name: "login", key: "user-data" } };
  await watcher.seen(makeProxy({ spec: { auth } }));
  await watcher.seen(makeProxy({ metadata: { name: "p2" }, spec: { cloudInit, provider: "other" } }));
  await watcher.seen(makeProxy({ metadata: { name: "p3", namespace: "elsewhere" }, spec: { auth } }));
  await watcher.seen(makeProxy({ metadata: { name: "p4" } }));
  await watcher.secretTouched("crawl/login");
  expect(jobs.slice(4)).toEqual(["reconcile.lab crawl/p1", "reconcile crawl/p2"]);
  await watcher.seen(makeProxy({ metadata: { generation: 2 } }));
  await watcher.gone("crawl/p2");
  const before = jobs.length;
  await watcher.secretTouched("crawl/login");
  expect(jobs.slice(before)).toEqual([]);
});

test("a resync gives way to a retry that waits, a changed provider does not", async () => {
  const items: EnqueueItem[] = [];
  const add = (added: readonly EnqueueItem[]): Promise<void> => Promise.resolve(void items.push(...added));
  const watcher = new ProxyJobs({
    producer: { enqueue: () => Promise.resolve(), enqueueMany: (_queue, added) => add(added) },
    fleet: { names: () => Promise.resolve(new Set()) },
    providerNames: () => ["lab"],
  });
  await watcher.seen(makeProxy());
  await watcher.resync(1000);
  expect(items.splice(0).map((item) => item.givesWay)).toEqual([true]);
  await watcher.providersChanged(["lab"]);
  expect(items.map((item) => item.givesWay)).toEqual([undefined, undefined]);
});

test("every phase is counted, zero included", async () => {
  const { watcher } = setUp();
  await watcher.seen(makeProxy({ status: { phase: "Ready" } }));
  expect(Object.fromEntries(watcher.countByPhase())).toEqual({
    Pending: 0,
    Provisioning: 0,
    Unhealthy: 0,
    Ready: 1,
    Failed: 0,
    Deleting: 0,
  });
});

function conditionOf(type: string): Condition {
  return { type, status: "True", reason: "Creating", message: "", lastTransitionTime: "2026-12-01T00:00:00Z" };
}
