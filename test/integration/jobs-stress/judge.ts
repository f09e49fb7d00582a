import type { Entry } from "./log.ts";

export interface Verdict {
  events: number;
  keys: number;
  runs: number;
  /** Runs that a killed process left unfinished. */
  cutOff: number;
  /** Runs that began while another of the same key was under way in a living process and went on to change something. */
  overlaps: string[];
  /** Such runs whose elder was paused, and refused by its fence: no harm done. */
  fencedOff: number;
  /** Keys whose last event no run served: began after it, and ended well. */
  lost: string[];
}

interface OpenRun {
  pid: number;
  beganAt: number;
  overlappedBy?: string;
}

/** Judges a log, entry by entry. */
export function judge(log: readonly Entry[]): Verdict {
  const open = new Map<string, Map<string, OpenRun>>();
  const unserved = new Map<string, number>();
  const keys = new Set<string>();
  const gone = new Set<number>();
  const verdict: Verdict = { events: 0, keys: 0, runs: 0, cutOff: 0, overlaps: [], fencedOff: 0, lost: [] };

  const start = ({ key, run, pid }: Extract<Entry, { ev: "start" }>, beganAt: number): void => {
    verdict.runs += 1;
    const runs = open.get(key) ?? new Map<string, OpenRun>();
    open.set(key, runs);
    // Decided when the elder ends: only then is it known whether its fence refused it.
    for (const elder of runs.values()) elder.overlappedBy ??= run;
    // A process's last words may arrive after its death was noted.
    if (gone.has(pid)) verdict.cutOff += 1;
    else runs.set(run, { pid, beganAt });
  };
  const end = ({ key, run, result }: Extract<Entry, { ev: "end" }>): void => {
    const { overlappedBy: by, beganAt = -1 } = open.get(key)?.get(run) ?? {};
    if (result === "done" && (unserved.get(key) ?? Infinity) < beganAt) unserved.delete(key);
    if (by !== undefined && result === "refused") verdict.fencedOff += 1;
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
