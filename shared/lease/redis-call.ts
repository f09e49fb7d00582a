import type { ChainableCommander } from "ioredis";
import { Failure } from "#shared/errors/failure.ts";

/** What Redis answers while it starts, fails over, or cannot write. Other error replies are mistakes of ours. */
const passing =
  /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|OOM|BUSY|MISCONF|NOREPLICAS|UNBLOCKED|NOAUTH|WRONGPASS)\b/;

/**
 * Runs a call to Redis. When Redis cannot be used now, the error becomes a Transient Failure `RedisUnavailable`
 * (ambiguous: the command may have taken effect although its answer was lost). Mistakes of ours pass through.
 */
export async function redisCall<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof TypeError) throw error;
    const replied = error instanceof Error && error.name === "ReplyError";
    if (replied && !passing.test(error.message)) throw error;
    throw new Failure({
      class: "Transient",
      code: "RedisUnavailable",
      message: "Redis cannot be used at the moment",
      ambiguous: !replied,
      cause: error,
    });
  }
}

/** Sends a pipeline of reads and returns their values in order. One that failed fails the whole, as in `redisCall`. */
export async function redisPipeline(pipeline: ChainableCommander): Promise<unknown[]> {
  return redisCall(async () => {
    const replies = (await pipeline.exec()) ?? [];
    return replies.map(([error, value]) => {
      if (error !== null) throw error;
      return value;
    });
  });
}
