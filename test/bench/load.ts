/** What a closed loop of clients saw. */
export interface LoadResult {
  requestsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
}

/** Runs one request; its time is recorded. */
export type Timed = <T>(request: () => Promise<T>) => Promise<T>;

/** Left out at the start of each load: the first requests open connections. */
const warmUpShare = 0.15;

/** `clients` of them repeat `turn` for `ms`, each one at a time. Rejects with the first turn that fails. */
export async function load(options: {
  clients: number;
  ms: number;
  turn: (timed: Timed) => Promise<void>;
}): Promise<LoadResult> {
  const { clients, ms, turn } = options;
  const startedAt = performance.now();
  const countedFrom = startedAt + ms * warmUpShare;
  const endsAt = startedAt + ms;
  const times: number[] = [];
  const timed: Timed = async (request) => {
    const sentAt = performance.now();
    const answer = await request();
    const now = performance.now();
    if (now >= countedFrom && now < endsAt) times.push(now - sentAt);
    return answer;
  };
  const client = async (): Promise<void> => {
    while (performance.now() < endsAt) await turn(timed);
  };
  await Promise.all(Array.from({ length: clients }, client));
  times.sort((a, b) => a - b);
  return {
    requestsPerSecond: (times.length / (endsAt - countedFrom)) * 1000,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
  };
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
