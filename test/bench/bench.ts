import type { RunningParts } from "#shared/process/stop.ts";
import type { Table } from "./table.ts";

export interface BenchContext {
  /** About how long to measure in all; preparing comes on top. */
  seconds: number;
  /** How many objects to measure with, where a bench can choose. */
  size?: number;
  /** Everything that a bench starts is added here, at once: it is stopped however the bench ends. */
  parts: RunningParts;
}

/** One bench. It measures our side and its ceiling in the same run, in turns, since only their ratio travels. */
export interface Bench {
  /** One line for the list. */
  summary: string;
  defaultSeconds: number;
  run: (context: BenchContext) => Promise<Table>;
}
