import { Failure, type FailureInit, toFailure } from "#shared/errors/failure.ts";

/** Which call of which provider failed. */
export interface CallTarget {
  op: "create" | "get" | "delete" | "list";
  /** Configured name. */
  provider: string;
  providerID?: string;
}

/** Codes that say nothing about the one instance: every other call would fail alike. */
const providerWide = new Set(["Unauthorized", "Unreachable", "TooManyRequests", "Unavailable", "ServerError"]);

/**
 * Gives a failure of the cluster client the names of provider and call. The client has translated the API server's
 * codes already; what is left is what they mean here.
 */
export function classify(error: unknown, target: CallTarget): Failure {
  const failure = toFailure(error);
  return new Failure({
    ...target,
    ...meaning(failure, target),
    message: failure.message,
    scope: providerWide.has(failure.code) ? "provider" : failure.scope,
    ambiguous: failure.ambiguous,
    ...(failure.retryAfterMs === undefined ? {} : { retryAfterMs: failure.retryAfterMs }),
    cause: failure,
  });
}

function meaning(failure: Failure, { op }: CallTarget): Pick<FailureInit, "class" | "code"> {
  // While creating or listing, something vanished under our hands (the namespace, a Pod just seen): that is no proof
  // that an instance is gone, and a repeat sees what is there.
  const misleading = failure.class === "NotFound" && (op === "create" || op === "list");
  return misleading ? { class: "Transient", code: "Vanished" } : { class: failure.class, code: failure.code };
}
