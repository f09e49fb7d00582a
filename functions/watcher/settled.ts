import type { Proxy } from "#shared/model/proxy.ts";

/**
 * Whether nothing is to be done at once: it is Ready for what its spec says now, and nothing is under way. What is not
 * in the spec (labels, a Secret) may have changed all the same.
 */
export function isSettled({ metadata, status }: Pick<Proxy, "metadata" | "status">): boolean {
  const holds = (type: string): boolean =>
    status.conditions?.some((each) => each.type === type && each.status === "True") ?? false;
  if (metadata.deletionTimestamp !== undefined || status.observedGeneration !== metadata.generation) return false;
  return holds("Ready") && !holds("Reconciling") && !holds("Stalled");
}
