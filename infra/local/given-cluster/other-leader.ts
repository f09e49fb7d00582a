import { setTimeout as sleep } from "node:timers/promises";
import type { LeaderLease } from "#shared/cluster/leader-lease.ts";
import { Failure } from "#shared/errors/failure.ts";

const pollMs = 500;

export interface OtherLeaderOptions {
  lease: Pick<LeaderLease, "read">;
  namespace: string;
  /** Ours: a start that was killed may be followed at once. */
  identity: string;
  say: (line: string) => void;
  signal: AbortSignal;
}

/**
 * Refuses to be the second installation in a namespace: each has a Redis of its own, and only the leader's would ever hear
 * of a Proxy. Throws Permanent `AnotherLeads` for one that renews its word; one that does not, for as long as that counts,
 * is gone.
 */
export async function refuseOtherLeader(options: OtherLeaderOptions): Promise<void> {
  const { lease, namespace, identity, say, signal } = options;
  const first = await lease.read({ signal });
  if (first === undefined || first.holder === "" || first.holder === identity) return;
  say(`Leader                ${first.holder} led in namespace ${namespace}; looking whether it still does`);
  // By our own clock alone, as the election does.
  for (const deadline = performance.now() + first.durationMs; performance.now() < deadline; ) {
    await sleep(pollMs, undefined, { signal });
    const now = await lease.read({ signal });
    if (now === undefined || now.holder === "") return;
    if (now.resourceVersion === first.resourceVersion) continue;
    const message = `Another installation leads in namespace ${namespace} of this cluster: ${now.holder}. Two of them, with a Redis each, cannot serve the same Proxies: stop that one, or choose a namespace of your own with --namespace.`;
    throw new Failure({ class: "Permanent", code: "AnotherLeads", message });
  }
}
