import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "#shared/errors/failure.ts";
import { createConsumer, type JobRun } from "#shared/jobs/consumer.ts";
import { connectRedis } from "#shared/redis/connect.ts";

/** A worker process for tests that pause or kill one. Arguments: the Redis url, and what its handler does. */
const [url = "", mode = ""] = process.argv.slice(2);

const handlers: Record<string, (run: JobRun) => Promise<void>> = {
  /** Ends its own process, as a crash would. */
  async die() {
    process.kill(process.pid, "SIGKILL");
    await sleep(60_000);
  },
  /** Asks its fence again and again, and tells the first refusal; then ends as if nothing had happened. */
  async fence({ fence }) {
    process.send?.({ begun: fence.token });
    for (;;) {
      try {
        await fence.check();
      } catch (error) {
        process.send?.({ refused: error instanceof Failure ? error.code : String(error) });
        return;
      }
      await sleep(10);
    }
  },
};

const handler = handlers[mode];
if (handler === undefined) throw new Error(`no such handler: ${mode}`);
process.on("disconnect", () => process.exit());
const consumer = createConsumer({
  redis: connectRedis({ url, name: "child", whenDown: "wait", onError: () => undefined }),
  queue: { fn: "reconcile", provider: "lab" },
  concurrency: 1,
  handler,
  backoff: { baseMs: 20, maxMs: 60_000, slowMs: 60_000, permanentMs: 600_000 },
  timing: { lockMs: 1_000, stalledCheckMs: 200 },
  log: { debug: () => undefined, info: () => undefined, warn: () => undefined },
});
await consumer.ready();
process.send?.({ ready: true });
