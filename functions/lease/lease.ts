import type { LeaseStore } from "#shared/lease/store.ts";

/** Most leases that one script call frees; see design: a script never runs long. */
const chunk = 100;

export interface LeaseFunctionDeps {
  store: Pick<LeaseStore, "reap">;
  log: { debug(fields: object, message: string): void };
}

/** What this function needs of a job's run. */
interface Run {
  key: string;
  signal: AbortSignal;
}

/**
 * Handles the jobs of the queue `lease`. `reap`: frees what expired leases held, chunk by chunk until none is due.
 * Grants do not wait for it, gauges do. Throws when Redis is away: the job is retried.
 */
export function createLeaseFunction({ store, log }: LeaseFunctionDeps): (run: Run) => Promise<void> {
  return async ({ key, signal }) => {
    if (key !== "reap") throw new Error(`the lease function knows no job ${key}`);
    let freed = 0;
    for (let last = chunk; last === chunk && !signal.aborted; freed += last) last = await store.reap(chunk);
    if (freed > 0) log.debug({ freed }, "freed expired leases");
  };
}
