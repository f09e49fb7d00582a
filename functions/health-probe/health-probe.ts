import { setTimeout as sleep } from "node:timers/promises";
import { type DueProbe, type ProbeSchedule, takeGraceMs } from "#shared/fleet/probe-schedule.ts";
import type { Logger } from "#shared/telemetry/logger.ts";
import type { HealthProbeSettings } from "./config.ts";
import { probe } from "./probe.ts";
import { inTurn, Slots } from "./slots.ts";

/** How often every provider is asked for what is due. */
const lookEveryMs = 500;
/** How often those are asked that have more due than they had room for. */
const hungryEveryMs = 50;
/** One script reads at most so many records, so that it never holds Redis for long. */
const mostPerTake = 200;
/** Redis is given up on for this turn after so long; the next turn tries again. */
const redisDeadlineMs = 5_000;

export interface ProbeObservation {
  provider: string;
  /** `<namespace>/<name>` */
  proxy: string;
  seconds: number;
  ok: boolean;
  reason: string;
}

export interface HealthProbeDeps {
  schedule: Pick<ProbeSchedule, "dueProviders" | "takeDue" | "recordProbe">;
  settings: HealthProbeSettings;
  /** A verdict changed: the status of `<namespace>/<name>` must follow. */
  enqueueReconcile: (provider: string, key: string) => Promise<void>;
  /** Called for every probe that came to an end. */
  onProbe: (observation: ProbeObservation) => void;
  log: Logger;
  /** For tests. */
  probe?: typeof probe;
  monotonicMs?: () => number;
}

/**
 * The loop that probes every registered proxy in its time. Any number of processes may run it: each due probe is taken
 * by one of them, and comes back by itself when that one dies.
 */
export class HealthProbe {
  readonly #deps: HealthProbeDeps;
  readonly #slots: Slots;
  readonly #stop = new AbortController();
  readonly #underWay = new Set<Promise<void>>();
  #loop: Promise<void> = Promise.resolve();
  #lastServed = "";

  constructor(deps: HealthProbeDeps) {
    this.#deps = deps;
    this.#slots = new Slots(deps.settings.HEALTH_PROBE_CONCURRENCY);
  }

  start(): void {
    this.#loop = this.#run();
  }

  /** Gives up the probes that are under way, uncounted. Resolves when the last one has closed its sockets. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error("health-probe stops"));
    await this.#loop;
    await Promise.all(this.#underWay);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    let hungry: string[] = [];
    let lookAt = 0;
    while (!signal.aborted) {
      const all = performance.now() >= lookAt;
      if (all) lookAt = performance.now() + lookEveryMs;
      try {
        hungry = await this.#serve(all ? await within(this.#deps.schedule.dueProviders(), signal) : hungry);
      } catch (error) {
        hungry = [];
        if (!signal.aborted) this.#deps.log.warn({ err: error }, "due probes could not be taken; tried again soon");
      }
      await sleep(hungry.length > 0 ? hungryEveryMs : lookEveryMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Starts what is due, as far as there is room. Returns the providers that may have more. */
  async #serve(providers: readonly string[]): Promise<string[]> {
    const hungry: string[] = [];
    for (const provider of inTurn(providers, this.#lastServed)) {
      const room = Math.min(this.#slots.room(provider), mostPerTake);
      const taken = room > 0 ? await within(this.#deps.schedule.takeDue(provider, room), this.#stop.signal) : [];
      for (const due of taken) this.#begin(due);
      if (taken.length > 0) this.#lastServed = provider;
      if (taken.length === room) hungry.push(provider);
    }
    return hungry;
  }

  #begin(due: DueProbe): void {
    const { provider } = due.record;
    this.#slots.take(provider);
    const run = this.#probe(due)
      .catch((error: unknown) => {
        if (this.#stop.signal.aborted) return;
        this.#deps.log.error({ err: error, proxy: nameOf(due) }, "a probe came to nothing; it is not counted");
      })
      .finally(() => {
        this.#slots.release(provider);
        this.#underWay.delete(run);
      });
    this.#underWay.add(run);
  }

  async #probe(due: DueProbe): Promise<void> {
    const { provider, host, port, credentials, probe: spec } = due.record;
    const { settings, onProbe, probe: send = probe, monotonicMs = () => performance.now(), log } = this.#deps;
    const started = monotonicMs();
    const timeoutMs = spec.timeoutSeconds * 1000;
    const url = spec.url ?? settings.HEALTH_CHECK_URL;
    const target = { host, port, credentials, url, expectedStatus: spec.expectedStatus, timeoutMs };
    const result = await send(target, this.#stop.signal);
    const { ok, reason } = result;
    onProbe({ provider, proxy: nameOf(due), seconds: result.latencyMs / 1000, ok, reason });
    if (monotonicMs() - started > timeoutMs + takeGraceMs) {
      // The process stood still. Others probe this one by now, and our timeout says nothing of the proxy.
      log.warn({ proxy: nameOf(due) }, "a probe took longer than it may; it is not counted");
      return;
    }
    // Not cut off by `stop`: what was found out is kept, and a change is told.
    const { changed, healthy } = await within(this.#deps.schedule.recordProbe(due, result));
    if (!changed) return;
    log.info({ proxy: nameOf(due), provider, healthy, reason }, result.message);
    await this.#report(due);
  }

  async #report(due: DueProbe): Promise<void> {
    try {
      await within(this.#deps.enqueueReconcile(due.record.provider, nameOf(due)));
    } catch (error) {
      const said =
        "a verdict changed, but its reconcile could not be enqueued; the next resync brings the status along";
      this.#deps.log.error({ err: error, proxy: nameOf(due) }, said);
    }
  }
}

/** A call to Redis waits for as long as Redis is away. We do not: throws after 5 s, and when the signal fires. */
async function within<T>(call: Promise<T>, signal?: AbortSignal): Promise<T> {
  const cut = Promise.withResolvers<never>();
  const timer = setTimeout(() => cut.reject(new Error(`no answer of Redis in ${redisDeadlineMs} ms`)), redisDeadlineMs);
  const abort = (): void => cut.reject(signal?.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort);
  try {
    return await Promise.race([call, cut.promise]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}

function nameOf({ record }: DueProbe): string {
  return `${record.namespace}/${record.name}`;
}
