import { type Job, Worker } from "bullmq";
import { Cluster } from "ioredis";
import { Failure } from "#shared/errors/failure.ts";
import { queuePrefix } from "#shared/model/keys.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import type { JobLog } from "./job-log.ts";
import { openQueue, reportError } from "./open-queue.ts";
import type { Backoff } from "./outcome.ts";
import { type QueueRef, queueName } from "./queue-name.ts";
import { type Handler, type JobReport, runJob } from "./run-job.ts";

export type { Handler, JobReport, JobRun } from "./run-job.ts";

export interface Consumer {
  /** Resolves once jobs are taken. */
  ready(): Promise<void>;
  /** From now on so many keys run at once. What runs already goes on. */
  setConcurrency(concurrency: number): void;
  /**
   * Takes no more jobs, fires the signal of those that run and puts their keys back, to run elsewhere at once. After
   * `stopWithinMs` it resolves although a handler ignores its signal; that key stays locked until the process ends.
   */
  close(): Promise<void>;
}

export interface ConsumerDeps {
  /** Shared by all consumers of a process, and made with `whenDown: "wait"`. Each opens one more connection to wait on. */
  redis: RedisClient;
  queue: QueueRef;
  concurrency: number;
  handler: Handler;
  backoff: Backoff;
  log: JobLog;
  /** For metrics; must not throw. */
  onOutcome?: (report: JobReport) => void;
  /** Tests shorten these. */
  timing?: Partial<ConsumerTiming>;
  /** A monotonic clock in milliseconds. */
  now?: () => number;
  random?: () => number;
}

interface ConsumerTiming {
  /** How long a run keeps its key without renewing (half of this). A killed worker's keys run again 4 to 8 s later. */
  lockMs: number;
  /** How often each worker looks for runs that lost their worker. */
  stalledCheckMs: number;
  stopWithinMs: number;
}

const defaultTiming: ConsumerTiming = { lockMs: 5_000, stalledCheckMs: 2_000, stopWithinMs: 5_000 };

/** Runs a handler for the keys of one queue, `concurrency` at a time, each key once at a time over all processes. */
export function createConsumer(deps: ConsumerDeps): Consumer {
  const { redis, queue, log } = deps;
  assertWaits(redis);
  const timing = { ...defaultTiming, ...deps.timing };
  const adds = openQueue(redis, queue, log);
  const running = new Map<string, AbortController>();
  let isStopping = false;

  const runDeps = {
    redis,
    queue,
    adds,
    handler: deps.handler,
    backoff: deps.backoff,
    lockMs: timing.lockMs,
    now: deps.now ?? (() => performance.now()),
    random: deps.random ?? Math.random,
    report: (report: JobReport): void => {
      logReport(log, report);
      deps.onOutcome?.(report);
    },
  };
  const process = async (job: Job): Promise<void> => {
    const controller = new AbortController();
    const id = job.id ?? "";
    running.set(id, controller);
    if (isStopping) controller.abort(shuttingDown());
    try {
      await runJob(runDeps, job, controller.signal);
    } finally {
      running.delete(id);
    }
  };
  const worker = createWorker(deps, timing, process);
  // BullMQ does not tell the handler by itself that another worker may have its job.
  worker.on("lockRenewalFailed", (ids) => {
    for (const id of ids) running.get(id)?.abort(lockLost());
  });

  return {
    async ready() {
      await worker.waitUntilReady();
    },
    setConcurrency(concurrency) {
      worker.concurrency = concurrency;
    },
    async close() {
      isStopping = true;
      const closed = worker.close();
      for (const controller of running.values()) controller.abort(shuttingDown());
      if (!(await settlesWithin(closed, timing.stopWithinMs)))
        log.warn({ queue: queueName(queue), running: running.size }, "jobs ignore their signal: stopping without them");
      await adds.close();
    },
  };
}

function createWorker(
  { redis, queue, log, concurrency }: ConsumerDeps,
  timing: ConsumerTiming,
  process: (job: Job) => Promise<void>,
): Worker {
  const worker = new SturdyWorker(queueName(queue), process, {
    connection: redis,
    prefix: queuePrefix(queue.provider),
    concurrency,
    lockDuration: timing.lockMs,
    stalledInterval: timing.stalledCheckMs,
    // BullMQ would drop a job, and with it its event, after so many deaths of its worker: `runJob` backs off instead.
    maxStalledCount: 1e9,
    runRetryDelay: 500,
  });
  worker.on("error", (error) => reportError(error, queue, log));
  return worker;
}

/** A job whose data is not even JSON becomes a job without data; BullMQ would throw, and hand it out again for ever. */
class SturdyWorker extends Worker {
  protected override createJob(...[data, id]: Parameters<Worker["createJob"]>): Job {
    try {
      return super.createJob(data, id);
    } catch {
      return super.createJob({ ...data, data: "{}" }, id);
    }
  }
}

function assertWaits(redis: RedisClient): void {
  const options = redis instanceof Cluster ? redis.options.redisOptions : redis.options;
  if (options?.maxRetriesPerRequest !== null)
    throw new Error('a consumer needs a Redis connection made with whenDown: "wait"');
}

function logReport(log: JobLog, { queue, failure, ...rest }: JobReport): void {
  const fields = { queue: queueName(queue), ...rest };
  if (rest.kind === "garbage") log.warn(fields, "dropped a job that is not of ours");
  else if (failure === undefined) log.debug(fields, "job ended");
  else if (rest.kind === "conflict") log.debug({ ...fields, reason: failure.message }, "what was read is not current");
  else log.warn({ ...fields, class: failure.class, code: failure.code, reason: failure.message }, "job failed");
}

const lockLost = (): Failure =>
  new Failure({ class: "Transient", code: "LockLost", message: "the lock on this key could not be renewed" });

const shuttingDown = (): Failure =>
  new Failure({ class: "Transient", code: "ShuttingDown", message: "this process stops" });

async function settlesWithin(work: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
