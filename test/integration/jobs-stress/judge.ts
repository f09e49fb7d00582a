import type { Entry, Logged } from "./log.ts";

export interface Verdict {
  events: number;
  keys: number;
  runs: number;
  /** Runs that a killed process left unfinished. */
  cutOff: number;
  /** Runs that began while another of the same key was under way in a living process. */
  overlaps: string[];
  /**
   * Not among them: the elder had not renewed its lock since it began (its process was paused for that long), and its
   * fence refused it. A queue cannot prevent that.
   */
  fencedOff: number;
  /** Keys whose last event no run served: began after it, and ended well. */
  lost: string[];
}

interface OpenRun {
  pid: number;
  /** Position in the log, and time. */
  position: number;
  at: number;
  overlappedBy?: string;
  /** When overlapped, it was old enough to have lost its lock. */
  mayHaveLostLock: boolean;
}

/** Judges a log, entry by entry. `lockMs`: how long a run keeps its key without renewing. */
export function judge(log: readonly Logged[], lockMs: number): Verdict {
  const open = new Map<string, Map<string, OpenRun>>();
  const unserved = new Map<string, number>();
  const keys = new Set<string>();
  const gone = new Set<number>();
  const verdict: Verdict = { events: 0, keys: 0, runs: 0, cutOff: 0, overlaps: [], fencedOff: 0, lost: [] };

  const start = ({ key, run, pid, at }: Extract<Logged, { ev: "start" }>, position: number): void => {
    verdict.runs += 1;
    const runs = open.get(key) ?? new Map<string, OpenRun>();
    open.set(key, runs);
    // Decided when the elder ends: only then is it known whether its fence refused it.
    for (const elder of runs.values()) {
      if (elder.overlappedBy === undefined) elder.mayHaveLostLock = at - elder.at >= lockMs;
      elder.overlappedBy ??= run;
    }
    // A process's last words may arrive after its death was noted.
    if (gone.has(pid)) verdict.cutOff += 1;
    else runs.set(run, { pid, position, at, mayHaveLostLock: false });
  };
  const end = ({ key, run, result }: Extract<Entry, { ev: "end" }>): void => {
    const ended = open.get(key)?.get(run);
    if (ended === undefined) return;
    if (result === "done" && (unserved.get(key) ?? Infinity) < ended.position) unserved.delete(key);
    const { overlappedBy: by, mayHaveLostLock } = ended;
    if (by !== undefined && mayHaveLostLock && result === "refused") verdict.fencedOff += 1;
    else if (by !== undefined) verdict.overlaps.push(`${key}: ${run} and ${by}`);
    open.get(key)?.delete(run);
  };
  const exit = (pid: number): void => {
    gone.add(pid);
    for (const [key, runs] of open) {
      for (const [run, { pid: owner, overlappedBy }] of runs) {
        if (owner !== pid) continue;
        verdict.cutOff += 1;
        if (overlappedBy !== undefined) verdict.overlaps.push(`${key}: ${run} and ${overlappedBy}`);
        runs.delete(run);
      }
    }
  };

  for (const [at, entry] of log.entries()) {
    if (entry.ev === "start") start(entry, at);
    else if (entry.ev === "end") end(entry);
    else if (entry.ev === "exit") exit(entry.pid);
    else {
      verdict.events += 1;
      keys.add(entry.key);
      unserved.set(entry.key, at);
    }
  }
  return { ...verdict, keys: keys.size, lost: [...unserved.keys()] };
}
