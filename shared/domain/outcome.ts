import type { Failure } from "#shared/errors/failure.ts";
import type { Effect } from "./plan-reconcile.ts";

/** What came of the planned effects: at most one took effect, those before it failed or are still going. */
export interface Outcome {
  done: { effect: Effect; providerID?: string } | undefined;
  /** Deletes that the backend has begun and not finished. */
  going: Effect[];
  failed: { effect: Effect; failure: Failure }[];
}

export const nothingDone: Outcome = { done: undefined, going: [], failed: [] };
