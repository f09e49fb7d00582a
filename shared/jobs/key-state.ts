import { z } from "zod";
import { jobKey } from "#shared/model/keys.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import { Script } from "#shared/redis/script.ts";
import type { JobFunction } from "./queue-name.ts";

const beginScript = new Script(new URL("./begin-run.lua", import.meta.url));
const settleScript = new Script(new URL("./settle-run.lua", import.meta.url));
const begun = z.tuple([z.coerce.number(), z.string(), z.coerce.number()]);
const settled = z.union([z.literal(0), z.literal(1)]);
const keepForMs = 7 * 86_400_000;

/** What a run finds when it begins. */
export interface BegunRun {
  /** Fencing token: greater than that of every earlier run of the key. */
  token: number;
  /** Changes with every event. */
  generation: string;
  /** Failures in a row before this run. */
  failures: number;
}

/**
 * The hash of one job key: `gen` counts events, `run` is the newest run's token, `fails` the failures in a row. It has
 * another hash tag than the queue, and one key may be in two queues, so no script touches both: the order of the
 * calls carries the guarantees (see `run-job.ts`).
 */
export class KeyState {
  readonly #redis: RedisClient;
  readonly #hash: string;

  constructor(redis: RedisClient, fn: JobFunction, key: string) {
    this.#redis = redis;
    this.#hash = jobKey(fn, key);
  }

  /** An event is about to be added. Before the add: a run that ends in between then sees it either way. */
  async countEvent(): Promise<void> {
    await this.#redis.hincrby(this.#hash, "gen", 1);
  }

  async generation(): Promise<string> {
    return (await this.#redis.hget(this.#hash, "gen")) ?? "0";
  }

  async begin(): Promise<BegunRun> {
    const [token, generation, failures] = begun.parse(await beginScript.run(this.#redis, [this.#hash], [keepForMs]));
    return { token, generation, failures };
  }

  /** False, and nothing written, when a newer run has begun. */
  async settle(token: number, failures: "reset" | "count" | "keep"): Promise<boolean> {
    return settled.parse(await settleScript.run(this.#redis, [this.#hash], [token, failures])) === 1;
  }

  async isNewest(token: number): Promise<boolean> {
    return (await this.#redis.hget(this.#hash, "run")) === String(token);
  }
}
