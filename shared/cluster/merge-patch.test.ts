import { expect, test } from "vitest";
import { mergePatch } from "./merge-patch.ts";

test.each([
  { what: "nothing for what is the same", before: { a: 1, b: { c: [1] } }, after: { a: 1, b: { c: [1] } }, patch: {} },
  { what: "a new value", before: { a: 1 }, after: { a: 2, b: 3 }, patch: { a: 2, b: 3 } },
  { what: "null for what vanished", before: { a: 1, b: 2 }, after: { a: 1 }, patch: { b: null } },
  { what: "null for what became undefined", before: { a: 1 }, after: { a: undefined }, patch: { a: null } },
  {
    what: "null at any depth",
    before: { a: { b: { c: 1, d: 2 } } },
    after: { a: { b: { d: 2 } } },
    patch: { a: { b: { c: null } } },
  },
  { what: "whole lists", before: { a: [{ x: 1 }, { y: 2 }] }, after: { a: [{ x: 1 }] }, patch: { a: [{ x: 1 }] } },
  { what: "an object in place of a list", before: { a: [1] }, after: { a: { b: 1 } }, patch: { a: { b: 1 } } },
])("A patch holds $what", ({ before, after, patch }) => {
  expect(mergePatch(before, after)).toEqual(patch);
});
