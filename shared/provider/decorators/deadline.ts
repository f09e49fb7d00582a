import { Failure } from "#shared/errors/failure.ts";
import type { Provider } from "../contract.ts";
import { type CallInfo, type Operation, wrapCalls } from "./wrap.ts";

/** The longest that a call may take when the caller set nothing shorter. */
export const defaultDeadlinesMs: Record<Operation, number> = {
  create: 60_000,
  get: 30_000,
  delete: 60_000,
  list: 120_000,
};

/**
 * Gives every call a deadline, and makes it return at once when its signal fires, although the backend hangs. A late
 * call fails Transient `Timeout` (`Aborted` when the caller gave up for another reason); for create and delete it is
 * ambiguous, since the backend may still do it.
 */
export function withDeadline(inner: Provider, deadlinesMs = defaultDeadlinesMs): Provider {
  return wrapCalls(inner, async (info, call, invoke) => {
    const limit = AbortSignal.timeout(deadlinesMs[info.op]);
    const signal = AbortSignal.any([call.signal, limit]);
    if (signal.aborted) throw cutOff(inner.name, info, signal, false);
    const { promise: fired, reject } = Promise.withResolvers<never>();
    const onAbort = (): void => reject(cutOff(inner.name, info, signal, true));
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      // The race also handles the rejection of the one that comes second: its caller has an answer already.
      return await Promise.race([invoke({ ...call, signal }), fired]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  });
}

function cutOff(provider: string, { op, providerID }: CallInfo, signal: AbortSignal, started: boolean): Failure {
  const late = signal.reason instanceof DOMException && signal.reason.name === "TimeoutError";
  return new Failure({
    class: "Transient",
    code: late ? "Timeout" : "Aborted",
    message: late ? `${op}: no answer before the deadline` : `${op}: given up before an answer came`,
    op,
    provider,
    ...(providerID === undefined ? {} : { providerID }),
    ambiguous: started && (op === "create" || op === "delete"),
    cause: signal.reason,
  });
}
