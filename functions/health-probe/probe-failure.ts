/** What one probe found. Shown in the status, so they are stable. */
export type ProbeReason =
  /** It answered as it should. */
  | "Answered"
  /** The host name of the proxy does not resolve. */
  | "AddressNotFound"
  /** Nobody listens at the address. */
  | "ConnectRefused"
  /** The connection to the proxy did not come about in time. */
  | "ConnectTimeout"
  /** It came to nothing for another cause: no route, for example. */
  | "ConnectFailed"
  /** The proxy does not accept its own credentials, or wants some where the Proxy names none. */
  | "ProxyAuthRequired"
  /** The proxy answered CONNECT with an error. */
  | "ProxyRefused"
  /** The TLS handshake failed, or the certificate could not be verified. */
  | "TlsFailed"
  | "UnexpectedStatus"
  /** The proxy took the connection, but the answer was not there in time. */
  | "Timeout"
  /** What came is not HTTP, or is larger than we read. */
  | "BadAnswer"
  /** The connection ended before the answer did. */
  | "ConnectionClosed"
  /** The url to fetch cannot be parsed. */
  | "BadUrl";

/** How far a probe came. */
export type Stage = "connect" | "proxy" | "tls" | "answer";

/** A probe failed, and that says something of the proxy. The message repeats nothing that a peer sent. */
export class ProbeFailure extends Error {
  override readonly name = "ProbeFailure";
  readonly reason: ProbeReason;

  constructor(reason: ProbeReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** This process lacks something; the proxy must not pay for it. */
const ownTrouble = new Set(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EADDRNOTAVAIL"]);

const whileConnecting = new Map<string, [ProbeReason, string]>([
  ["ECONNREFUSED", ["ConnectRefused", "Nobody listens at the proxy's address."]],
  ["ETIMEDOUT", ["ConnectTimeout", "The connection to the proxy did not come about in time."]],
  ["ENOTFOUND", ["AddressNotFound", "The proxy's host name does not resolve."]],
  ["EAI_AGAIN", ["AddressNotFound", "The proxy's host name does not resolve."]],
]);

const closed = new Set(["ECONNRESET", "EPIPE", "ERR_STREAM_PREMATURE_CLOSE"]);

/**
 * Gives an error of Node's network modules its meaning. Node's own messages may quote what the peer sent: only codes
 * are kept. Returns undefined for what is our own trouble, or no network error at all.
 */
export function explain(error: unknown, stage: Stage): ProbeFailure | undefined {
  if (error instanceof ProbeFailure) return error;
  const code = codeOf(error);
  if (code === undefined || ownTrouble.has(code)) return undefined;
  if (closed.has(code)) return new ProbeFailure("ConnectionClosed", `The connection ended ${whenIn[stage]}.`);
  if (stage === "connect") {
    const [reason, message] = whileConnecting.get(code) ?? [
      "ConnectFailed",
      `The connection to the proxy failed (${code}).`,
    ];
    return new ProbeFailure(reason, message);
  }
  if (code === "HPE_HEADER_OVERFLOW") return new ProbeFailure("BadAnswer", "The headers of the answer are too large.");
  if (code.startsWith("HPE_")) return new ProbeFailure("BadAnswer", `What came is not HTTP (${code}).`);
  if (stage === "tls") return new ProbeFailure("TlsFailed", `The site could not be verified (${code}).`);
  return new ProbeFailure("ConnectionClosed", `The connection failed ${whenIn[stage]} (${code}).`);
}

/** The probe's time is over. */
export function timedOut(stage: Stage): ProbeFailure {
  if (stage === "connect")
    return new ProbeFailure("ConnectTimeout", "The connection to the proxy did not come about in time.");
  return new ProbeFailure("Timeout", `The time was over ${whenIn[stage]}.`);
}

const whenIn = {
  connect: "as it was made",
  proxy: "while the proxy had to answer",
  tls: "during the TLS handshake through the proxy",
  answer: "while the site had to answer through the proxy",
} as const;

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return undefined;
  return /^[A-Z][A-Z0-9_]{1,63}$/.test(error.code) ? error.code : undefined;
}
