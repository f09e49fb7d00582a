import { keys, parseBucket } from "#shared/model/keys.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import { matchesPlace, type Selector } from "./selector.ts";

/** How long the known list is used unasked. A miss always asks again, so a new bucket is never overlooked. */
const freshMs = 1_000;

/**
 * The names of all buckets, kept in memory so that a grant needs no second round trip for them.
 * Buckets are few: namespaces x providers x zones.
 */
export class Buckets {
  readonly #redis: RedisClient;
  readonly #monotonicMs: () => number;
  #names: string[] = [];
  #readAt = -Infinity;

  constructor(deps: { redis: RedisClient; monotonicMs: () => number }) {
    this.#redis = deps.redis;
    this.#monotonicMs = deps.monotonicMs;
  }

  /** Names of the buckets whose instances may match. `fresh`: asks Redis even if it was asked a moment ago. */
  async matching(
    selector: Selector,
    namespaces: readonly string[] | undefined,
    options: { fresh: boolean },
  ): Promise<string[]> {
    if (options.fresh || this.#monotonicMs() - this.#readAt > freshMs) {
      const readAt = this.#monotonicMs();
      this.#names = await this.#redis.hkeys(keys.buckets);
      this.#readAt = readAt;
    }
    return this.#names.filter((name) => matchesPlace(parseBucket(name), selector, namespaces));
  }
}
