import { type FailureClass, toFailure } from "#shared/errors/failure.ts";
import type { Provider } from "../contract.ts";
import { type Operation, wrapCalls } from "./wrap.ts";

/** One finished call: what `proxy_operator_provider_requests_total` counts. */
export interface ProviderCall {
  /** Configured name. */
  provider: string;
  op: Operation;
  result: "ok" | FailureClass;
}

/** Tells `observe` of every call once it ended. */
export function withMetrics(inner: Provider, observe: (call: ProviderCall) => void): Provider {
  return wrapCalls(inner, async ({ op }, call, invoke) => {
    try {
      const answer = await invoke(call);
      observe({ provider: inner.name, op, result: "ok" });
      return answer;
    } catch (error) {
      observe({ provider: inner.name, op, result: toFailure(error).class });
      throw error;
    }
  });
}
