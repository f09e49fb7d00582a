/**
 * What an error means for whoever has to retry: the one vocabulary shared by providers, the cluster client and the
 * job queue (source: the provider contract).
 *
 * - NotFound: proven gone. Never used for "could not be read".
 * - QuotaExceeded: refused for lack of capacity; retried slowly.
 * - Transient: may pass by itself; retried with exponential backoff. Whatever is not classified is this.
 * - Permanent: repeating the same call cannot help until somebody changes something.
 */
export type FailureClass = "NotFound" | "QuotaExceeded" | "Transient" | "Permanent";

/** How much of a provider the failure concerns. */
export type FailureScope = "instance" | "zone" | "provider";

export interface FailureInit {
  class: FailureClass;
  /** Stable, CamelCase, one word a machine can match, e.g. `NameConflict`. */
  code: string;
  /** A sentence for a person. Never holds a secret. */
  message: string;
  /** The call that failed, e.g. `create`, `patch status`. */
  op?: string;
  /** Configured name of the provider. */
  provider?: string;
  providerID?: string;
  scope?: FailureScope;
  /** Not before this many milliseconds from now. */
  retryAfterMs?: number;
  /** The call may have taken effect although it failed (a lost answer). */
  ambiguous?: boolean;
  cause?: unknown;
}

/** The one error type that crosses a boundary of ours. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly class: FailureClass;
  readonly code: string;
  readonly op: string | undefined;
  readonly provider: string | undefined;
  readonly providerID: string | undefined;
  readonly scope: FailureScope;
  readonly retryAfterMs: number | undefined;
  readonly ambiguous: boolean;

  constructor(init: FailureInit) {
    super(init.message, init.cause === undefined ? undefined : { cause: init.cause });
    this.class = init.class;
    this.code = init.code;
    this.op = init.op;
    this.provider = init.provider;
    this.providerID = init.providerID;
    this.scope = init.scope ?? "instance";
    this.retryAfterMs = init.retryAfterMs;
    this.ambiguous = init.ambiguous ?? false;
  }
}

/** Gives any thrown value a meaning: a Failure stays as it is, everything else is Transient. */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new Failure({ class: "Transient", code: "Unclassified", message, cause: error });
}

export function isNotFound(error: unknown): boolean {
  return error instanceof Failure && error.class === "NotFound";
}
