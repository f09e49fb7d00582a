import type { Job, Queue } from "bullmq";
import { Failure } from "#shared/errors/failure.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import { lookJob, nextRunJob } from "./added-job.ts";
import { addEvents } from "./enqueue.ts";
import { createFence, type Fence } from "./fence.ts";
import { type BegunRun, KeyState } from "./key-state.ts";
import { type Backoff, decideOutcome, type Ending, type HandlerAnswer, type Outcome } from "./outcome.ts";
import { type Enqueued, parsePayload } from "./payload.ts";
import type { QueueRef } from "./queue-name.ts";

/** One run of a key. No two runs of a function and key overlap, except when a process was paused: hence the fence. */
export interface JobRun {
  key: string;
  queue: QueueRef;
  /** Fires when the worker lost the key or stops. Its reason is a Failure (`LockLost`, `ShuttingDown`). */
  signal: AbortSignal;
  fence: Fence;
  /** Transient failures in a row before this run. */
  failures: number;
  traceparent?: string;
}

export type Handler = (run: JobRun) => Promise<HandlerAnswer>;

/** How a job ended, for metrics and logs. */
export interface JobReport {
  queue: QueueRef;
  /** Absent for garbage. */
  key?: string;
  /**
   * `superseded`: a newer run has the key and this one changed nothing more. `garbage`: not a payload; dropped.
   * For the others see `decideOutcome`.
   */
  kind: Outcome["kind"] | "superseded" | "garbage";
  delayMs?: number;
  failure?: Failure;
  durationMs: number;
}

export interface RunJobDeps {
  redis: RedisClient;
  queue: QueueRef;
  /** The handle of the same queue, for what a run adds. */
  adds: Queue;
  handler: Handler;
  backoff: Backoff;
  lockMs: number;
  now: () => number;
  random: () => number;
  report: (report: JobReport) => void;
}

/** Deaths of its worker in a row after which a key waits as if its handler had failed. */
const poisonousStalls = 3;

/**
 * Does what one BullMQ job asks for. Resolves however the handler ended, so BullMQ itself never retries a handler; rejects
 * only when Redis refuses, and then BullMQ runs the job again.
 */
export async function runJob(deps: RunJobDeps, job: Job, signal: AbortSignal): Promise<void> {
  const startedAt = deps.now();
  const payload = parsePayload(job.data);
  if (payload === undefined) {
    deps.report({ queue: deps.queue, kind: "garbage", durationMs: 0 });
    return;
  }
  if (job.name === "later") {
    await fire(deps, payload);
    return;
  }
  const state = new KeyState(deps.redis, deps.queue.fn, payload.key);
  const begun = await state.begin();
  const ending = await runHandler(deps, { payload, job, signal, state, begun });
  const outcome = decideOutcome(ending, { failures: begun.failures, backoff: deps.backoff, random: deps.random });
  const isOurs = await settle(deps, { item: payload, state, begun, outcome });
  deps.report({
    queue: deps.queue,
    key: payload.key,
    ...(isOurs ? shown(outcome) : { kind: "superseded" }),
    durationMs: deps.now() - startedAt,
  });
}

/** What a timer does when it is due. */
async function fire(deps: RunJobDeps, payload: Enqueued): Promise<void> {
  if (payload.givesWay === undefined) {
    await addEvents({ redis: deps.redis, queue: deps.adds, fn: deps.queue.fn, items: [payload] });
    return;
  }
  // Not counted as an event: a run that is under way, or that waits, is the look that this one asks for.
  const look = lookJob(payload);
  await deps.adds.add(look.name, look.data, look.opts);
}

function shown({ failures: _, ...outcome }: Outcome): Omit<Outcome, "failures"> {
  return outcome;
}

async function runHandler(
  deps: RunJobDeps,
  run: { payload: Enqueued; job: Job; signal: AbortSignal; state: KeyState; begun: BegunRun },
): Promise<Ending> {
  const { payload, job, signal, state, begun } = run;
  if (signal.aborted) return { how: "threw", error: signal.reason, aborted: true };
  if (job.stalledCounter >= poisonousStalls) {
    const message = `its worker died or hung ${job.stalledCounter} times in a row while it ran`;
    return { how: "threw", error: new Failure({ class: "Transient", code: "WorkerLost", message }), aborted: false };
  }
  const fence = createFence({ state, token: begun.token, signal, lockMs: deps.lockMs, now: deps.now });
  try {
    const { failures } = begun;
    return { how: "answered", answer: await deps.handler({ ...payload, queue: deps.queue, signal, fence, failures }) };
  } catch (error) {
    return { how: "threw", error, aborted: signal.aborted };
  }
}

/**
 * Records the outcome and asks for the next run, while the job is still active. The order matters, since the key's hash and the
 * queue cannot be changed by one script:
 * 1. settle: a run that was overtaken stops here and leaves everything to the newer one;
 * 2. add the next run. BullMQ sets it aside and makes it the next job when this one ends, so no crash loses it. It
 *    overwrites whatever an event has set aside since the run began;
 * 3. only then compare the generation: an event counts itself before it adds, so one that was overwritten shows, and is
 *    put back. One that is not seen here adds itself after 2 and takes the place of our delayed run.
 */
async function settle(
  deps: RunJobDeps,
  run: { item: Enqueued; state: KeyState; begun: BegunRun; outcome: Outcome },
): Promise<boolean> {
  const { item, state, begun, outcome } = run;
  const hasNothingToRecord = outcome.kind === "done" && begun.failures === 0;
  if (hasNothingToRecord) return true;
  if (!(await state.settle(begun.token, outcome.failures))) return false;
  if (outcome.delayMs === undefined) return true;
  const { key } = item;
  const next = nextRunJob({ key }, outcome.delayMs);
  await deps.adds.add(next.name, next.data, next.opts);
  if (outcome.delayMs > 0 && (await state.generation()) !== begun.generation) {
    const again = nextRunJob({ key }, 0);
    await deps.adds.add(again.name, again.data, again.opts);
  }
  return true;
}
