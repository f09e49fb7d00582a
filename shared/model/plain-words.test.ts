import { expect, test } from "vitest";
import { z } from "zod";
import { plainWords } from "./plain-words.ts";

const schema = z.strictObject({
  text: z.string().min(2).max(3).regex(/^a/).default("aa"),
  whole: z.int().min(1).max(9).default(1),
  flag: z.boolean().default(true),
  choice: z.enum(["one", "two"]).default("one"),
  list: z.array(z.string()).min(1).max(1).default(["a"]),
  either: z.union([z.string(), z.number()]).default(1),
  record: z.record(z.string().min(1), z.string()).default({}),
  nested: z.strictObject({ needed: z.string() }).default({ needed: "" }),
  own: z.string("expected words of my own").default(""),
});

test.each([
  [{ text: 1 }, "expected text, not a number"],
  [{ text: "a" }, "expected at least 2 characters"],
  [{ text: "aaaa" }, "expected at most 3 characters"],
  [{ text: "bb" }, "this value is not allowed"],
  [{ whole: "8" }, "expected a number, not text: remove the quotes"],
  [{ whole: "x" }, "expected a number, not text"],
  [{ whole: 1.5 }, "expected a whole number"],
  [{ whole: null }, "expected a number, not nothing"],
  [{ whole: 10 }, "expected at most 9"],
  [{ flag: "true" }, "expected true or false, not text: remove the quotes"],
  [{ choice: "three" }, "expected one of one, two"],
  [{ list: "a" }, "expected a list, not text"],
  [{ list: [] }, "expected at least 1 in the list"],
  [{ either: [] }, "expected text or a number, not a list"],
  [{ record: [] }, "expected a mapping (key: value), not a list"],
  [{ record: { "": "a" } }, "this key is not allowed"],
  [{ nested: {} }, "is missing: expected text"],
  [{ other: 1 }, "unknown key other"],
  [{ own: 1 }, "expected words of my own"],
])("%j is explained as: %s", (value, message) => {
  const result = schema.safeParse(value, { error: plainWords });
  expect(result.error?.issues.map((issue) => issue.message)).toEqual([message]);
});

test("no message repeats the value", () => {
  const everywhere = Object.fromEntries(Object.keys(schema.shape).map((key) => [key, "hunter2"]));
  const result = schema.safeParse(everywhere, { error: plainWords });
  expect(result.error?.issues.length).toBeGreaterThan(5);
  expect(JSON.stringify(result.error?.issues.map((issue) => issue.message))).not.toContain("hunter2");
});
