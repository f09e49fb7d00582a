import { expect, test } from "vitest";
import { judge } from "./jobs-stress/judge.ts";
import type { Entry } from "./jobs-stress/log.ts";
import { runStress } from "./jobs-stress/stress.ts";

const event: Entry = { ev: "event", key: "a" };
const start = (pid: number): Entry => ({ ev: "start", key: "a", run: `run-${pid}`, pid });
const end = (pid: number, result: Extract<Entry, { ev: "end" }>["result"] = "done"): Entry => ({
  ev: "end",
  key: "a",
  run: `run-${pid}`,
  result,
});
/** Nothing of note, for as long as a lock. */
const pause: Entry = { ev: "exit", pid: 0 };
const lockMs = 3_000;
const exit = (pid: number): Entry => ({ ev: "exit", pid });

test.each([
  ["runs one after the other", [event, start(1), end(1), event, start(2), end(2)], { overlaps: [], lost: [] }],
  ["two runs at once", [event, start(1), start(2), end(1), end(2)], { overlaps: ["a: run-1 and run-2"] }],
  [
    "two runs at once, the elder refused",
    [start(1), start(2), end(1, "refused")],
    { overlaps: ["a: run-1 and run-2"] },
  ],
  [
    "an elder that was paused, and not refused",
    [start(1), pause, start(2), end(1)],
    { overlaps: ["a: run-1 and run-2"] },
  ],
  [
    "an elder that was paused, and refused",
    [start(1), pause, start(2), end(1, "refused")],
    { overlaps: [], fencedOff: 1 },
  ],
  ["a run after its elder was killed", [event, start(1), exit(1), start(2), end(2)], { overlaps: [], cutOff: 1 }],
  ["last words of a killed process", [event, exit(1), start(1), start(2), end(2)], { overlaps: [], cutOff: 1 }],
  ["a run beside one that is killed later", [start(1), start(2), exit(1)], { overlaps: ["a: run-1 and run-2"] }],
  ["an event that nothing ran after", [start(1), event, end(1)], { lost: ["a"] }],
  ["an event whose only run was cut off", [event, start(1), exit(1)], { lost: ["a"] }],
  ["an event whose only run failed", [event, start(1), end(1, "failed")], { lost: ["a"] }],
] as const)("the judge of the stress test sees %s", (_, log, verdict) => {
  let at = 0;
  const timed = log.map((entry) => ({ ...entry, at: (at += entry === pause ? lockMs : 1) }));
  expect(judge(timed, lockMs)).toMatchObject(verdict);
});

test("random events under kill -9 of workers: no overlap, no lost event, nothing left behind", {
  timeout: 120_000,
}, async () => {
  const seed = Date.now() % 1_000_000;
  console.log(`stress seed ${seed}; by hand: node test/integration/jobs-stress/stress.ts --seconds 600 --seed ${seed}`);
  const result = await runStress({ seconds: 22, seed });
  console.log(JSON.stringify(result));
  expect(result).toMatchObject({ overlaps: [], lost: [], unfinished: 0, leftBehind: [], seed });
  // It is no proof if nothing happened.
  expect(Math.min(result.kills, result.cutOff)).toBeGreaterThan(0);
  expect(Math.min(result.events, result.runs)).toBeGreaterThan(500);
});
