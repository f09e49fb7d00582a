import { expect, test } from "vitest";
import { generatedFiles, outdatedFiles } from "./generate.ts";

test("every generated file is what the code says", () => {
  expect(generatedFiles().size).toBeGreaterThan(0);
  expect(outdatedFiles()).toEqual([]);
});
