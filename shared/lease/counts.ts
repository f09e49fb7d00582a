/**
 * Why a matching proxy cannot be leased, in the order in which they are judged: each proxy counts for the first that
 * fits. Cooling down, pacing, warming up and exclusion do not exist yet; their numbers are 0.
 */
export const reasons = [
  "unhealthy",
  "draining",
  "coolingDown",
  "coolingDownForTarget",
  "paced",
  "warmingUp",
  "excluded",
  "full",
] as const;
type Reason = (typeof reasons)[number];

export interface Counts extends Record<Reason, number> {
  /** All proxies that the caller may see. */
  total: number;
  /** Those that the selector matches: the sum of all reasons. */
  matching: number;
}

/** `free`: can be leased now. The others are reasons why not. */
export const proxyStates = ["free", "unhealthy", "draining", "full"] as const;
export type ProxyState = (typeof proxyStates)[number];

export function proxyState(proxy: { healthy: boolean; draining: boolean; leases: number; max: number }): ProxyState {
  if (!proxy.healthy) return "unhealthy";
  if (proxy.draining) return "draining";
  return proxy.leases < proxy.max ? "free" : "full";
}

/**
 * The counts of a refused acquire. Nothing was free when the grant looked, so what is free in this reading, taken up to
 * a second earlier or later, was full then.
 */
export function countByReason(total: number, matching: readonly ProxyState[]): Counts {
  const counts: Counts = {
    total,
    matching: matching.length,
    unhealthy: 0,
    draining: 0,
    coolingDown: 0,
    coolingDownForTarget: 0,
    paced: 0,
    warmingUp: 0,
    excluded: 0,
    full: 0,
  };
  for (const state of matching) counts[state === "free" ? "full" : state] += 1;
  return counts;
}
