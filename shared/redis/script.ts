import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { type RedisClient, withoutArguments } from "./connect.ts";

/**
 * A Lua script kept in a `.lua` file, headed by its KEYS, ARGV and what it returns.
 * Run by its digest; sent whole when Redis does not know it (the first time, and after a restart or failover).
 */
export class Script {
  readonly #source: string;
  readonly #sha: string;

  /**
   * `files`: e.g. `new URL("./grant.lua", import.meta.url)`; several are joined in order, so that scripts can share a
   * first part. Read at once, so that a missing file fails the start.
   */
  constructor(...files: URL[]) {
    this.#source = files.map((file) => readFileSync(file, "utf8")).join("\n");
    this.#sha = createHash("sha1").update(this.#source).digest("hex");
  }

  /** One round trip. The answer's shape is the script's; callers parse it. Errors hold no argument. */
  async run(redis: RedisClient, scriptKeys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    try {
      return await redis.evalsha(this.#sha, scriptKeys.length, ...scriptKeys, ...args);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw withoutArguments(error);
    }
    try {
      return await redis.eval(this.#source, scriptKeys.length, ...scriptKeys, ...args);
    } catch (error) {
      throw withoutArguments(error);
    }
  }
}
