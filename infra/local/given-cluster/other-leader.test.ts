import { expect, test } from "vitest";
import type { LeaseRecord } from "#shared/cluster/leader-lease.ts";
import { refuseOtherLeader } from "./other-leader.ts";

/** Looks at a Lease of which each reading is the next of these, and the last one for ever. Answers with what was said. */
async function look(...readings: (Partial<LeaseRecord> | undefined)[]): Promise<string[]> {
  const lines: string[] = [];
  const read = (): Promise<LeaseRecord | undefined> => {
    const next = readings.length > 1 ? readings.shift() : readings[0];
    const usual = { holder: "other", durationMs: 1_000, transitions: 0, resourceVersion: "1" };
    return Promise.resolve(next === undefined ? undefined : { ...usual, ...next });
  };
  await refuseOtherLeader({
    lease: { read },
    namespace: "here",
    identity: "we",
    say: (line) => lines.push(line),
    signal: AbortSignal.timeout(20_000),
  });
  return lines;
}

test.each([
  ["there is none", undefined],
  ["it was given back", { holder: "" }],
  ["it is ours, of a start that was killed", { holder: "we" }],
])("a Lease is no obstacle when %s", async (_, reading) => {
  expect(await look(reading)).toEqual([]);
});

test("a leader that renews its word is refused by name, with the remedy", async () => {
  const start = look({}, {}, { resourceVersion: "2" });
  await expect(start).rejects.toMatchObject({ class: "Permanent", code: "AnotherLeads" });
  await expect(start).rejects.toThrow(/namespace here of this cluster: other\..*--namespace/);
});

test("one that is silent for as long as its word counts, or gives it back, is gone", async () => {
  expect(await look({})).toEqual([expect.stringContaining("other led in namespace here")]);
  expect(await look({ durationMs: 60_000 }, { durationMs: 60_000 }, { holder: "", resourceVersion: "2" })).toHaveLength(
    1,
  );
});
