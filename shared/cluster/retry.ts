import type { Failure } from "#shared/errors/failure.ts";
import type { Effect } from "./failure.ts";

const maxAttempts = 4;

/**
 * How long to wait before the same request is sent again, in milliseconds; undefined: not at all. Only what the server
 * cannot have acted on is repeated: reads, and writes that it refused for overload.
 */
export function retryDelayMs(failure: Failure, effect: Effect, attempt: number): number | undefined {
  if (attempt >= maxAttempts) return undefined;
  const backoff = 200 * 2 ** (attempt - 1) * (0.5 + Math.random());
  switch (failure.code) {
    case "TooManyRequests":
      return failure.retryAfterMs ?? backoff;
    case "Unavailable":
      // With Retry-After it is the server that sheds load; without, it may be a proxy that lost the answer to a write.
      return failure.retryAfterMs ?? (effect === "read" ? backoff : undefined);
    case "Unreachable":
    case "UnexpectedAnswer":
      return effect === "read" ? backoff : undefined;
    default:
      return undefined;
  }
}
