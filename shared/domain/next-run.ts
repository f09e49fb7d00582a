import type { Outcome } from "./outcome.ts";
import { waitBeforeReplaceMs } from "./plan-reconcile.ts";
import { isProvisioned, type Situation } from "./situation.ts";

/** An instance that runs but passes no probes is read ever more seldom, at last in this time. */
const slowestPollMs = 30_000;

/**
 * When to run again without an event, in milliseconds; undefined: not before one.
 * `pollMs`: how often a pending or deleting instance is read.
 */
export function nextRunMs(situation: Situation, outcome: Outcome, pollMs: number): number | undefined {
  const { proxy, view, configured } = situation;
  if (outcome.done !== undefined) return outcome.done.effect.kind === "remove-finalizer" ? undefined : 0;
  if (outcome.going.length > 0) return pollMs;
  const wait = waitBeforeReplaceMs(situation);
  if (wait > 0) return wait;
  if (!configured || proxy.metadata.deletionTimestamp !== undefined || proxy.status.instance === undefined)
    return undefined;
  if (view.kind === "seen" && view.state === "Running") return pollOfRunning(situation, pollMs);
  // It starts. What is settled was not read, and waits for an event.
  return view.kind === "seen" || !isProvisioned(proxy.status) ? pollMs : undefined;
}

/** It does not pass its probes, yet. They tell when it does; it is read in case that it stops before. */
function pollOfRunning({ proxy, verdict, now }: Situation, pollMs: number): number {
  const provisioned = proxy.status.conditions?.find((each) => each.type === "Provisioned" && each.status === "True");
  const since = verdict?.at ?? (provisioned && new Date(provisioned.lastTransitionTime)) ?? now;
  return Math.max(pollMs, Math.min(slowestPollMs, (now.getTime() - since.getTime()) / 2));
}
