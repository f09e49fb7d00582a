import { Redis } from "ioredis";
import { z } from "zod";

const entry = z.discriminatedUnion("ev", [
  /** Written before the event is enqueued. */
  z.object({ ev: z.literal("event"), key: z.string() }),
  z.object({ ev: z.literal("start"), key: z.string(), run: z.string(), pid: z.coerce.number() }),
  /** `failed`: it will throw. `refused`: the fence did not let this run change anything. */
  z.object({ ev: z.literal("end"), key: z.string(), run: z.string(), result: z.enum(["done", "failed", "refused"]) }),
  /** Written once the process is gone. */
  z.object({ ev: z.literal("exit"), pid: z.coerce.number() }),
]);
export type Entry = z.infer<typeof entry>;
/** `at`: milliseconds of the log's clock. */
export type Logged = Entry & { at: number };

/**
 * What really happened, in one total order, kept in a Redis that the queue does not know: whatever befalls the queue's
 * own, this log is whole.
 */
export class StressLog {
  readonly #redis: Redis;

  constructor(url: string) {
    this.#redis = new Redis(url, { maxRetriesPerRequest: null });
  }

  async write(what: Entry): Promise<void> {
    await this.#redis.xadd("log", "*", ...Object.entries(what).flatMap(([name, value]) => [name, String(value)]));
  }

  /** From now on every handler succeeds, so that the queue comes to rest. */
  async startDraining(): Promise<void> {
    await this.#redis.set("draining", "1");
  }

  async isDraining(): Promise<boolean> {
    return (await this.#redis.exists("draining")) === 1;
  }

  async read(): Promise<Logged[]> {
    const entries: Logged[] = [];
    for (let after = "-"; ; ) {
      const page = await this.#redis.xrange("log", after, "+", "COUNT", 10_000);
      for (const [id, fields] of page) {
        const pairs = fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1]]] : []));
        entries.push({ ...entry.parse(Object.fromEntries(pairs)), at: Number.parseInt(id, 10) });
        after = `(${id}`;
      }
      if (page.length === 0) return entries;
    }
  }

  close(): void {
    this.#redis.disconnect();
  }
}
