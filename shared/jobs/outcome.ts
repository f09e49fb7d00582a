import { type Failure, toFailure } from "#shared/errors/failure.ts";

/** Waits of a consumer, in milliseconds. */
export interface Backoff {
  /** First and longest wait of the exponential backoff for what may pass by itself. */
  baseMs: number;
  maxMs: number;
  /** After a refusal for lack of capacity. */
  slowMs: number;
  /** After an error that repeating cannot help. Also the longest wait that a failure may ask for. */
  permanentMs: number;
}

/** What a handler may answer. Without `requeueAfterMs` the key rests until its next event. */
export type HandlerAnswer = { requeueAfterMs?: number } | void;

/** How a handler ended. */
export type Ending =
  | { how: "answered"; answer: HandlerAnswer }
  /** `aborted`: its signal had fired, so the error says nothing about the key. */
  | { how: "threw"; error: unknown; aborted: boolean };

export interface Outcome {
  kind: "done" | "requeued" | "aborted" | "conflict" | "backoff" | "slow" | "permanent";
  /** When the key runs again without an event; absent: never. */
  delayMs?: number;
  /** What happens to the counter of failures in a row, which drives the exponential backoff alone. */
  failures: "reset" | "count" | "keep";
  failure?: Failure;
}

export interface OutcomeContext {
  /** In a row, before this run. */
  failures: number;
  backoff: Backoff;
  /** At least 0, less than 1. */
  random: () => number;
}

/** What an ending means for the queue. */
export function decideOutcome(ending: Ending, context: OutcomeContext): Outcome {
  if (ending.how === "threw")
    return ending.aborted ? { kind: "aborted", delayMs: 0, failures: "keep" } : failed(ending.error, context);
  const delayMs = ending.answer?.requeueAfterMs;
  if (delayMs === undefined) return { kind: "done", failures: "reset" };
  // NaN would run the key again at once, for ever.
  if (!Number.isFinite(delayMs) || delayMs < 0)
    return failed(new RangeError(`requeueAfterMs is ${delayMs}, expected 0 or more`), context);
  return { kind: "requeued", delayMs: Math.ceil(delayMs), failures: "reset" };
}

/** Long enough that whoever writes at the same time is through, and that a lasting quarrel costs little. */
const conflictMs = 1_000;

function failed(error: unknown, { failures, backoff, random }: OutcomeContext): Outcome {
  const failure = toFailure(error);
  const jittered = (ms: number): number => Math.round(ms / 2 + (random() * ms) / 2);
  // Somebody else changed the object since it was read. Nothing is wrong: the next run reads it anew.
  if (failure.class === "Transient" && failure.code === "Conflict")
    return { kind: "conflict", delayMs: jittered(conflictMs), failures: "keep", failure };
  // Whoever refused knows better than our constant, also when it asks for less; but nothing sleeps for days.
  const asked = Math.min(failure.retryAfterMs ?? 0, backoff.permanentMs);
  if (failure.class === "QuotaExceeded")
    return { kind: "slow", delayMs: asked || backoff.slowMs, failures: "keep", failure };
  if (failure.class === "Permanent")
    return { kind: "permanent", delayMs: asked || backoff.permanentMs, failures: "keep", failure };
  // Transient; or a NotFound that nobody handled, which is a surprise and may pass.
  // Equal jitter: never less than half, so that backoff still grows; spread, so that keys do not march in step.
  const delayMs = jittered(Math.min(backoff.maxMs, backoff.baseMs * 2 ** failures));
  return { kind: "backoff", delayMs: Math.max(delayMs, asked), failures: "count", failure };
}
