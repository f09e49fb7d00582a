import { expect, test } from "vitest";
import { inTurn, Slots } from "./slots.ts";

test("one provider gets a quarter of the slots, and all of them together no more than there are", () => {
  const slots = new Slots(8);
  expect(slots.room("a")).toBe(2);
  for (const provider of ["a", "a", "b", "b", "c", "c", "d"]) slots.take(provider);
  expect([slots.room("a"), slots.room("d"), slots.room("e"), slots.free]).toEqual([0, 1, 1, 1]);
  slots.take("e");
  expect(slots.room("f")).toBe(0);
  slots.release("a");
  expect([slots.room("a"), slots.room("f")]).toEqual([1, 1]);
});

test("with few slots a provider still gets one", () => {
  expect(new Slots(1).room("a")).toBe(1);
  expect(new Slots(3).room("a")).toBe(1);
});

test("the turn goes on after the one that was served last, also when that one is gone", () => {
  expect(inTurn(["c", "a", "b"], "")).toEqual(["a", "b", "c"]);
  expect(inTurn(["c", "a", "b"], "a")).toEqual(["b", "c", "a"]);
  expect(inTurn(["c", "a"], "b")).toEqual(["c", "a"]);
});
