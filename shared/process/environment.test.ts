import { expect, test } from "vitest";
import { z } from "zod";
import { checkEnvironment, flag, integer, parseEnvironment, SettingsError } from "./environment.ts";

const schema = z.object({
  ADDRESS: z.string({ error: "expected an address" }),
  COUNT: integer(1, 10).default(3),
  LOUD: flag.default(false),
});

test("what is not set takes its default, and an empty variable is not set", () => {
  expect(parseEnvironment(schema, { ADDRESS: "a", COUNT: "", OTHER: "x" })).toEqual({
    ADDRESS: "a",
    COUNT: 3,
    LOUD: false,
  });
});

test("every bad setting is named with what was expected, in one error", () => {
  const parse = (): unknown => parseEnvironment(schema, { COUNT: "11", LOUD: "yes" });
  expect(parse).toThrow(SettingsError);
  expect(parse).toThrow(
    /ADDRESS: is required and not set: expected an address[\s\S]*COUNT: expected a whole number from 1 to 10[\s\S]*LOUD: expected true or false/,
  );
});

test("what is wrong with several schemas is one error, and nothing is named twice", () => {
  const other = z.object({ COUNT: integer(1, 10), PATH_OF: z.string("expected a path") });
  expect(() => checkEnvironment([schema, other], { COUNT: "0" })).toThrow(
    new SettingsError(
      [
        "invalid settings:",
        "  ADDRESS: is required and not set: expected an address",
        "  COUNT: expected a whole number from 1 to 10",
        "  PATH_OF: is required and not set: expected a path",
        "See docs/settings.md.",
      ].join("\n"),
    ),
  );
  checkEnvironment([schema, other], { ADDRESS: "a", COUNT: "1", PATH_OF: "b" });
});

test("a value is never repeated, since it may be a secret", () => {
  expect(() => parseEnvironment(schema, { ADDRESS: "a", COUNT: "hunter2" })).toThrow(/^(?!.*hunter2)/s);
});
