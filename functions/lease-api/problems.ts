/**
 * Every error answer of the lease API (RFC 9457). The key is the stable end of `type`: clients match it, so one is
 * never renamed. docs/lease-api.md lists the same; a test compares them.
 */
export const problems = {
  "invalid-request": { status: 400, title: "A field of the request is not valid" },
  "malformed-request": { status: 400, title: "The request could not be read" },
  unauthorized: { status: 401, title: "A known bearer token is required" },
  "missing-scope": { status: 403, title: "The token lacks the scope for this call" },
  "namespace-not-allowed": { status: 403, title: "The token is not for this namespace" },
  "not-owner": { status: 403, title: "The lease was taken with another API token" },
  "wrong-lease-token": { status: 403, title: "The Lease-Token does not belong to this lease" },
  "route-not-found": { status: 404, title: "There is no such call" },
  "lease-not-found": { status: 404, title: "There is no such lease" },
  "proxy-not-found": { status: 404, title: "There is no such proxy" },
  "request-timeout": { status: 408, title: "The request did not arrive in time" },
  "body-too-large": { status: 413, title: "The body is too large" },
  "uri-too-long": { status: 414, title: "A part of the path is too long" },
  "unsupported-media-type": { status: 415, title: "The body must be application/json" },
  "quota-exceeded": { status: 429, title: "The token has as many leases as it may have" },
  "headers-too-large": { status: 431, title: "The headers are too large" },
  internal: { status: 500, title: "Something went wrong on our side" },
  "nothing-free": { status: 503, title: "No matching proxy is free now" },
  "search-too-long": { status: 503, title: "It could not be found out in time whether a proxy is free" },
  "redis-unavailable": { status: 503, title: "The lease store cannot be reached now" },
} as const;
export type ProblemCode = keyof typeof problems;

export const problemTypePrefix = "urn:egress-proxies:problem:";
export const problemMediaType = "application/problem+json";

interface ProblemInit {
  /** A sentence about this very case. Never holds a secret. */
  detail?: string;
  /** Sent as the header Retry-After. */
  retryAfterSeconds?: number;
  /** More members of the answer. */
  extensions?: Record<string, unknown>;
}

/** Thrown by a route to answer with a problem. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly code: ProblemCode;
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;
  readonly #extensions: Record<string, unknown>;

  constructor(code: ProblemCode, init: ProblemInit = {}) {
    super(init.detail ?? problems[code].title);
    this.code = code;
    this.status = problems[code].status;
    this.retryAfterSeconds = init.retryAfterSeconds;
    this.#extensions = init.extensions ?? {};
  }

  /** The answer's body. */
  toBody(): string {
    const { title, status } = problems[this.code];
    return JSON.stringify({
      type: `${problemTypePrefix}${this.code}`,
      title,
      status,
      ...(this.message === title ? {} : { detail: this.message }),
      ...this.#extensions,
    });
  }
}
