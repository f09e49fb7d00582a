import { expect, test } from "vitest";
import { makeInstance, makeProxy } from "#test/fixtures/proxy.ts";
import { makeSituation, now, readyStatus } from "#test/fixtures/situation.ts";
import { nextRunMs } from "./next-run.ts";
import { nothingDone } from "./outcome.ts";
import type { Situation } from "./situation.ts";

const createdAt = new Date("2026-12-01T00:00:05Z");
const starting = makeProxy({ status: { instance: makeInstance() } });
const running = makeProxy({ status: readyStatus() });
const seen = (state: "Provisioning" | "Running") => ({ kind: "seen", state, createdAt }) as const;
const failing = (forMs: number) => ({ healthy: false, message: "no answer", at: new Date(now.getTime() - forMs) });
const next = (overrides: Partial<Situation>) => nextRunMs(makeSituation(overrides), nothingDone, 2_000);

test("an instance that starts is read every poll", () => {
  expect(next({ proxy: starting, view: seen("Provisioning") })).toBe(2_000);
  expect(next({ proxy: starting, view: { kind: "unread" } })).toBe(2_000);
});

test("one that runs but fails its probes is read ever more seldom", () => {
  expect(next({ proxy: running, view: seen("Running"), verdict: failing(0) })).toBe(2_000);
  expect(next({ proxy: running, view: seen("Running"), verdict: failing(20_000) })).toBe(10_000);
  expect(next({ proxy: running, view: seen("Running"), verdict: failing(3_600_000) })).toBe(30_000);
});

test("one that was just seen running for the first time is read soon again", () => {
  expect(next({ proxy: starting, view: seen("Running") })).toBe(2_000);
});

test("a settled one waits for an event", () => {
  expect(next({ proxy: running, view: { kind: "unread" } })).toBeUndefined();
});
