/** What a closed loop of clients saw. */
export interface Load {
  /** Of each request that was counted. */
  timesMs: readonly number[];
  /** How long requests were counted. */
  countedMs: number;
}

/** Runs one request; its time is recorded. */
export type Timed = <T>(request: () => Promise<T>) => Promise<T>;

/** Left out at the start of each load: its first requests may open connections. */
const leftOut = 0.1;

/** `clients` of them repeat `turn` for `ms`, each one at a time. Rejects with the first turn that fails. */
export async function load(options: {
  clients: number;
  ms: number;
  turn: (timed: Timed) => Promise<void>;
}): Promise<Load> {
  const { clients, ms, turn } = options;
  const startedAt = performance.now();
  const countedFrom = startedAt + ms * leftOut;
  const endsAt = startedAt + ms;
  const timesMs: number[] = [];
  const timed: Timed = async (request) => {
    const sentAt = performance.now();
    const answer = await request();
    const now = performance.now();
    if (now >= countedFrom && now < endsAt) timesMs.push(now - sentAt);
    return answer;
  };
  const client = async (): Promise<void> => {
    while (performance.now() < endsAt) await turn(timed);
  };
  await Promise.all(Array.from({ length: clients }, client));
  return { timesMs, countedMs: endsAt - countedFrom };
}

/** Requests per second over several loads. */
export function rateOf(loads: readonly Load[]): number {
  const requests = loads.reduce((sum, { timesMs }) => sum + timesMs.length, 0);
  return (requests / loads.reduce((sum, { countedMs }) => sum + countedMs, 0)) * 1000;
}

/** The time within which each of these shares (0 to below 1) of all requests was answered, in milliseconds. */
export function percentilesOf(loads: readonly Load[], shares: readonly number[]): number[] {
  const sorted = loads.flatMap(({ timesMs }) => timesMs).sort((a, b) => a - b);
  return shares.map((share) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN);
}
