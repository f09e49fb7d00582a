import { expect, onTestFinished, test } from "vitest";
import { createLogger } from "#shared/telemetry/logger.ts";
import { startJobRig } from "#test/integration/jobs/rig.ts";
import { ReconcileConsumers, type StartReconcileDeps } from "./start.ts";

const soon = { timeout: 20_000 };

const quiet = createLogger({ levels: { level: "silent", components: {} }, pretty: false });
const never = (): Promise<never> => Promise.reject(new Error("not expected to be called"));

/** Consumers whose every run stops at its first read until the test lets it go. */
async function setUp(processMost: number) {
  const { redis, producer } = await startJobRig();
  const reads: string[] = [];
  const held: (() => void)[] = [];
  const deps: Omit<StartReconcileDeps, "settings" | "log"> = {
    redis,
    proxies: {
      get: async ({ name }) => {
        reads.push(name);
        await new Promise<void>((resolve) => held.push(resolve));
        return undefined;
      },
      addFinalizer: never,
      removeFinalizer: never,
      patchStatus: never,
    },
    fleet: { look: never, upsert: never, amend: never, keepOnly: never, removeByName: () => Promise.resolve(0) },
    events: { record: () => undefined },
    secrets: { read: never },
    installation: { id: "inst234567", hashKey: Buffer.from("key") },
    provider: () => undefined,
    handOver: never,
    onGone: () => undefined,
    onOutcome: () => undefined,
  };
  const settings = {
    RECONCILE_CONCURRENCY: processMost,
    PENDING_POLL_SECONDS: 10,
    QUOTA_RETRY_SECONDS: 300,
    PERMANENT_RETRY_SECONDS: 3600,
  };
  const consumers = new ReconcileConsumers({ ...deps, settings, log: quiet });
  onTestFinished(() => consumers.stop());
  const enqueue = (provider: string, count: number): Promise<void> =>
    producer.enqueueMany(
      { fn: "reconcile", provider },
      Array.from({ length: count }, (_, at) => ({ key: `crawl/${provider}-${at}` })),
    );
  const release = (): void => {
    for (const letGo of held.splice(0)) letGo();
  };
  onTestFinished(release);
  return { consumers, reads, release, enqueue };
}

test("a provider runs as many Proxies at once as it allows, no more than the process does, and as it is changed to", async () => {
  const { consumers, reads, release, enqueue } = await setUp(3);
  await enqueue("one", 8);
  await enqueue("many", 8);
  await consumers.follow([
    { name: "one", concurrency: 1 },
    { name: "many", concurrency: 10 },
  ]);
  const of = (provider: string): number => reads.filter((name) => name.startsWith(provider)).length;
  await expect.poll(() => [of("one"), of("many")], soon).toEqual([1, 3]);
  await consumers.follow([
    { name: "one", concurrency: 2 },
    { name: "many", concurrency: 1 },
  ]);
  release();
  await expect.poll(() => [of("one"), of("many")], soon).toEqual([3, 4]);
});
