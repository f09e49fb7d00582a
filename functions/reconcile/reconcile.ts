import { isDeepStrictEqual } from "node:util";
import type { EventRecorder } from "#shared/cluster/events.ts";
import type { ProxyClient } from "#shared/cluster/proxies.ts";
import { failureOf } from "#shared/domain/describe-conditions.ts";
import { describeStatus } from "#shared/domain/describe-status.ts";
import { nextRunMs } from "#shared/domain/next-run.ts";
import type { Outcome } from "#shared/domain/outcome.ts";
import { planReconcile } from "#shared/domain/plan-reconcile.ts";
import type { Situation } from "#shared/domain/situation.ts";
import { Failure } from "#shared/errors/failure.ts";
import type { Fleet } from "#shared/fleet/fleet.ts";
import type { QueueRef } from "#shared/jobs/queue-name.ts";
import type { JobRun } from "#shared/jobs/run-job.ts";
import { finalizer } from "#shared/model/names.ts";
import { type Proxy, parseProxyKey } from "#shared/model/proxy.ts";
import type { Provider } from "#shared/provider/contract.ts";
import { act } from "./act.ts";
import { eventsOf } from "./events.ts";
import { type GatherDeps, gather } from "./gather.ts";
import { register } from "./register.ts";

export interface ReconcileDeps extends GatherDeps {
  proxies: Pick<ProxyClient, "get" | "addFinalizer" | "removeFinalizer" | "patchStatus">;
  fleet: Pick<Fleet, "look" | "upsert" | "amend" | "keepOnly" | "removeByName">;
  events: Pick<EventRecorder, "record">;
  /** The live provider of a name; undefined when it is not configured. */
  provider: (name: string) => Provider | undefined;
  pendingPollMs: number;
  monotonicMs: () => number;
  /** Passes a key on to the queue that is right for it. */
  handOver: (queue: QueueRef, key: string, delayMs: number) => Promise<void>;
  /** Called when a Proxy is gone, so that metrics of it vanish. */
  onGone: (key: string) => void;
}

/**
 * One run for one Proxy: gather, decide, act, report. Returns when to run again without an event, in milliseconds.
 * Throws the Failure that the queue has to retry, after the status says so.
 */
export async function reconcile(run: JobRun, deps: ReconcileDeps): Promise<{ requeueAfterMs?: number }> {
  const call = { signal: run.signal };
  const readAt = deps.monotonicMs();
  const proxy = await deps.proxies.get(parseProxyKey(run.key), call);
  if (proxy === undefined) {
    await deps.fleet.removeByName(run.key, run.fence.token);
    deps.onGone(run.key);
    return {};
  }
  const provider = deps.provider(proxy.spec.provider);
  if (await handedOver(run, proxy.spec.provider, provider !== undefined, deps)) return {};
  const { situation, values } = await gather(proxy, provider, deps, call);
  const effects = planReconcile(situation);
  await register(situation, effects, values, deps.fleet, run.fence);
  const { id: installation } = deps.installation;
  const confirm = (): Promise<void> => confirmRead(proxy, readAt, deps, run);
  const context = {
    proxies: deps.proxies,
    provider,
    installation,
    fence: run.fence,
    signal: run.signal,
    values,
    confirm,
  };
  const outcome = await act(proxy, effects, context);
  await report(situation, outcome, deps, run.signal);
  return nextRun(situation, outcome, provider?.pendingPollMs, deps);
}

/** When to run again. Throws the failure that the queue has to retry. */
function nextRun(
  situation: Situation,
  outcome: Outcome,
  providerPollMs: number | undefined,
  { pendingPollMs }: ReconcileDeps,
): { requeueAfterMs?: number } {
  const after = nextRunMs(situation, outcome, providerPollMs ?? pendingPollMs);
  const failure = failureOf(situation, outcome);
  const isOfProvider = outcome.failed.length > 0 || situation.view.kind === "unknown";
  // What cannot be resolved for a successor must not keep the instance that is there from being read.
  const isRetried = failure !== undefined && outcome.done === undefined && (isOfProvider || after === undefined);
  if (isRetried) throw toRetry(situation.proxy, failure);
  return after === undefined ? {} : { requeueAfterMs: after };
}

/** A process learns of a new providers file up to some seconds after another: no reason to pass a key to and fro. */
const unknownProviderMs = 10_000;

/**
 * A key in the queue of another provider, or in the common queue although its provider is there by now, belongs
 * elsewhere. Tells whether it was passed on.
 */
async function handedOver(run: JobRun, name: string, configured: boolean, deps: ReconcileDeps): Promise<boolean> {
  const home: QueueRef = configured ? { fn: "reconcile", provider: name } : { fn: "reconcile" };
  if (home.provider === run.queue.provider) return false;
  await deps.handOver(home, run.key, configured ? 0 : unknownProviderMs);
  return true;
}

/** Older than this, what was read is read again before the provider is asked to change something. */
const freshMs = 2_000;

/** A slow read of the instance must neither act on an old Proxy nor starve: the fence refuses what is older than a lock. */
async function confirmRead(proxy: Proxy, readAt: number, deps: ReconcileDeps, run: JobRun): Promise<void> {
  if (deps.monotonicMs() - readAt < freshMs) return;
  run.fence.renewRead();
  const again = await deps.proxies.get(proxy.metadata, { signal: run.signal });
  if (again?.metadata.resourceVersion === proxy.metadata.resourceVersion) return;
  throw new Failure({
    class: "Transient",
    code: "Superseded",
    message: "the Proxy changed while its instance was read",
  });
}

/** The one status write of a run, and only when it says something new. Events are told after it, never instead. */
async function report(situation: Situation, outcome: Outcome, deps: ReconcileDeps, signal: AbortSignal): Promise<void> {
  const { proxy } = situation;
  const kind = outcome.done?.effect.kind;
  // The object has just changed under us, or is gone: the next run has more to say.
  if (kind === "add-finalizer" || kind === "remove-finalizer") return;
  if (isForeignDeletion(proxy)) return;
  const status = describeStatus(situation, outcome);
  if (!isDeepStrictEqual(status, proxy.status)) await deps.proxies.patchStatus(proxy, status, { signal });
  for (const event of eventsOf(proxy.status, status, outcome)) deps.events.record({ regarding: proxy, ...event });
}

/** Only somebody else's finalizer keeps it: nothing of ours is left to report. */
function isForeignDeletion({ metadata }: Proxy): boolean {
  return metadata.deletionTimestamp !== undefined && !metadata.finalizers.includes(finalizer);
}

/** A refused create waits for somebody to change something; a deletion never does, so it is retried like any failure. */
function toRetry({ metadata }: Proxy, failure: Failure): Failure {
  if (metadata.deletionTimestamp === undefined || failure.class !== "Permanent") return failure;
  const { code, message } = failure;
  return new Failure({ class: "Transient", code, message, cause: failure });
}
