import { randomUUID } from "node:crypto";
import { type Enqueued, timerId, toPayload } from "./payload.ts";

/**
 * - `removeOn…`: our outcomes are not BullMQ's; a kept failed job that somebody retries from a dashboard would run its
 *   key twice at once.
 * - `attempts`: a safety net for errors of Redis inside our own wrapper. Without it a job that meets one (out of
 *   memory, say) is finished and its event lost. Handlers' errors never get here: see `run-job.ts`.
 */
const always = {
  removeOnComplete: true,
  removeOnFail: true,
  attempts: 2 ** 31,
  backoff: { type: "fixed", delay: 1_000 },
  stackTraceLimit: 1,
} as const;

/** BullMQ's own ids restart at 1 after a flush, and an id must not be an integer or hold a colon. */
const newId = (): string => `j-${randomUUID()}`;

/**
 * "Something happened to this key": one waiting job per key. `replace` pulls a delayed retry forward; while the key is
 * running, `keepLastIfActive` sets the job aside and the script that ends the run makes it the next job, with no gap in
 * which a crash could lose it.
 */
export function eventJob(item: Enqueued) {
  const deduplication = { id: item.key, keepLastIfActive: true, replace: true };
  return { name: "run", data: toPayload(item), opts: { ...always, jobId: newId(), deduplication } };
}

/**
 * A run of a key that waits for nothing: dropped where one waits already, a delayed retry too. Without `replace`, that is
 * all the difference to an event.
 */
export function lookJob({ key, traceparent }: Enqueued) {
  return nextRunJob({ key, ...(traceparent === undefined ? {} : { traceparent }) }, 0);
}

/**
 * The next run that a run asks for while it is still active. It takes the place of a job that an event set aside: the
 * caller looks for that afterwards.
 */
export function nextRunJob(item: Enqueued, delayMs: number) {
  const deduplication = { id: item.key, keepLastIfActive: true };
  return { name: "run", data: toPayload(item), opts: { ...always, jobId: newId(), delay: delayMs, deduplication } };
}

/**
 * A timer: when it fires, the worker enqueues the key. A job of its own, since a delayed `run` job would overwrite the
 * one that an event has set aside for a running key.
 */
export function laterJob(item: Enqueued, delayMs: number) {
  const opts = { ...always, jobId: newId(), delay: delayMs };
  return { name: "later", data: toPayload(item), opts };
}

/** A timer that is dropped where one of its kind is pending for its key. */
export function onlyLaterJob(item: Enqueued, delayMs: number) {
  const job = laterJob(item, delayMs);
  return { ...job, opts: { ...job.opts, deduplication: { id: timerId(item) } } };
}
