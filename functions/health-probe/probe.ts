import type { ProbeResult } from "#shared/fleet/probe-schedule.ts";
import { type Answer, Attempt, askProxy, fetchAbsolute, fetchThroughTunnel, type ProxyAddress } from "./exchange.ts";
import { observedIP } from "./observed-ip.ts";
import { explain, ProbeFailure, type ProbeReason, timedOut } from "./probe-failure.ts";

export interface ProbeTarget extends ProxyAddress {
  /** http or https; a login in it is not sent. Undefined: the proxy's own answer to a CONNECT counts. */
  url?: string | undefined;
  /** Undefined: any from 200 to 399. Redirects are not followed. */
  expectedStatus?: number | undefined;
  timeoutMs: number;
}

/**
 * Sends one request through a proxy, within `timeoutMs` over all stages. Whatever happens, its sockets are closed when
 * the promise settles. Throws what says nothing of the proxy: the signal's reason, or trouble of this process (too many
 * open files); such a probe must not count.
 */
export async function probe(target: ProbeTarget, signal: AbortSignal): Promise<ProbeResult & { reason: ProbeReason }> {
  signal.throwIfAborted();
  const started = performance.now();
  const attempt = new Attempt();
  const cut = Promise.withResolvers<never>();
  const timer = setTimeout(() => cut.reject(timedOut(attempt.stage)), target.timeoutMs);
  const abort = (): void => cut.reject(signal.reason);
  signal.addEventListener("abort", abort);
  try {
    const success = await Promise.race([judged(target, attempt), cut.promise]);
    return { ...success, ok: true, reason: "Answered", latencyMs: performance.now() - started };
  } catch (error) {
    const failure = signal.aborted ? undefined : explain(error, attempt.stage);
    if (failure === undefined) throw error;
    const { reason, message } = failure;
    return { ok: false, reason, message, latencyMs: performance.now() - started };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
    attempt.end();
  }
}

/** Says what was seen, or throws why it does not count. The message of a success stays the same from probe to probe. */
async function judged(target: ProbeTarget, attempt: Attempt): Promise<{ message: string; observedIP?: string }> {
  if (target.url === undefined) {
    await askProxy(target, attempt);
    return { message: "The proxy answers." };
  }
  const { status, body } = await fetchUrl(target.url, target, attempt);
  const { expectedStatus } = target;
  const expected = expectedStatus === undefined ? status >= 200 && status <= 399 : status === expectedStatus;
  if (!expected) {
    const wanted = expectedStatus ?? "200 to 399";
    throw new ProbeFailure("UnexpectedStatus", `The answer has status ${status}, expected was ${wanted}.`);
  }
  const ip = body && observedIP(body);
  return { message: `The site answers through the proxy with status ${status}.`, ...(ip && { observedIP: ip }) };
}

async function fetchUrl(text: string, proxy: ProxyAddress, attempt: Attempt): Promise<Answer> {
  const url = URL.parse(text);
  if (url?.protocol === "https:") return await fetchThroughTunnel(url, proxy, attempt);
  if (url?.protocol === "http:") return await fetchAbsolute(url, proxy, attempt);
  throw new ProbeFailure("BadUrl", "The url of the health check is not an http or https url.");
}
