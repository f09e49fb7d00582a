import type { Outcome } from "./outcome.ts";
import { waitBeforeReplaceMs } from "./plan-reconcile.ts";
import { isProvisioned, type Situation } from "./situation.ts";

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
  // What was read is not settled: it starts, or it does not pass its probes. Settled ones wait for an event.
  return view.kind === "seen" || !isProvisioned(proxy.status) ? pollMs : undefined;
}
