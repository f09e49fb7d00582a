import { expect, test } from "vitest";
import { Failure, type FailureClass } from "#shared/errors/failure.ts";
import { decideOutcome } from "./outcome.ts";

const backoff = { baseMs: 1_000, maxMs: 60_000, slowMs: 300_000, permanentMs: 3_600_000 };
const context = { failures: 0, backoff, random: () => 1 };

function threw(failureClass: FailureClass, retryAfterMs?: number) {
  const asked = retryAfterMs === undefined ? {} : { retryAfterMs };
  return {
    how: "threw",
    error: new Failure({ class: failureClass, code: "Code", message: "m", ...asked }),
    aborted: false,
  } as const;
}

test.each([
  ["no answer", undefined, { kind: "done", failures: "reset" }],
  ["an empty answer", {}, { kind: "done", failures: "reset" }],
  ["requeueAfterMs 0", { requeueAfterMs: 0 }, { kind: "requeued", delayMs: 0, failures: "reset" }],
  ["a fraction of a millisecond", { requeueAfterMs: 0.2 }, { kind: "requeued", delayMs: 1, failures: "reset" }],
  ["requeueAfterMs 5000", { requeueAfterMs: 5_000 }, { kind: "requeued", delayMs: 5_000, failures: "reset" }],
  ["a negative wait", { requeueAfterMs: -1 }, { kind: "backoff", delayMs: 1_000, failures: "count" }],
  ["NaN as the wait", { requeueAfterMs: Number.NaN }, { kind: "backoff", delayMs: 1_000, failures: "count" }],
])("a handler that answers with %s", (_, answer, outcome) => {
  expect(decideOutcome({ how: "answered", answer }, context)).toMatchObject(outcome);
});

test.each([
  ["Transient", undefined, { kind: "backoff", delayMs: 1_000, failures: "count" }],
  ["NotFound", undefined, { kind: "backoff", delayMs: 1_000, failures: "count" }],
  ["QuotaExceeded", undefined, { kind: "slow", delayMs: 300_000, failures: "keep" }],
  ["Permanent", undefined, { kind: "permanent", delayMs: 3_600_000, failures: "keep" }],
  ["Transient", 30_000, { kind: "backoff", delayMs: 30_000, failures: "count" }],
  ["Transient", 10, { kind: "backoff", delayMs: 1_000, failures: "count" }],
  ["QuotaExceeded", 10_000, { kind: "slow", delayMs: 10_000, failures: "keep" }],
  ["Permanent", 10_000, { kind: "permanent", delayMs: 10_000, failures: "keep" }],
  ["QuotaExceeded", 1e12, { kind: "slow", delayMs: 3_600_000, failures: "keep" }],
] as const)("a handler that throws %s and asks for %s ms", (failureClass, retryAfterMs, outcome) => {
  const ending = threw(failureClass, retryAfterMs);
  expect(decideOutcome(ending, context)).toEqual({ ...outcome, failure: ending.error });
});

test("an error without a class is Transient", () => {
  const outcome = decideOutcome({ how: "threw", error: new Error("boom"), aborted: false }, context);
  expect(outcome).toMatchObject({ kind: "backoff", failure: { class: "Transient", message: "boom" } });
});

test("a conflict is no failure: the key runs again soon, however often it failed before", () => {
  const error = new Failure({ class: "Transient", code: "Conflict", message: "m" });
  const outcome = decideOutcome({ how: "threw", error, aborted: false }, { ...context, failures: 9 });
  expect(outcome).toEqual({ kind: "conflict", delayMs: 1_000, failures: "keep", failure: error });
});

test("an aborted run goes again at once and is not counted, whatever it threw", () => {
  const ending = { ...threw("Permanent"), aborted: true };
  expect(decideOutcome(ending, context)).toEqual({ kind: "aborted", delayMs: 0, failures: "keep" });
});

test("backoff doubles with each failure in a row, up to its maximum", () => {
  const delays = [0, 1, 2, 3, 6, 7, 5_000].map(
    (failures) => decideOutcome(threw("Transient"), { ...context, failures }).delayMs,
  );
  expect(delays).toEqual([1_000, 2_000, 4_000, 8_000, 60_000, 60_000, 60_000]);
});

test("jitter takes away at most half", () => {
  const delays = [0, 0.5, 1].map(
    (value) => decideOutcome(threw("Transient"), { ...context, random: () => value }).delayMs,
  );
  expect(delays).toEqual([500, 750, 1_000]);
});
