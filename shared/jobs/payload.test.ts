import { expect, test } from "vitest";
import { parsePayload, toPayload } from "./payload.ts";

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

test("a payload is read back, with fields of a newer version ignored", () => {
  expect(parsePayload({ ...toPayload({ key: "ns/a", traceparent }), extra: 1 })).toEqual({ key: "ns/a", traceparent });
  expect(parsePayload(toPayload({ key: "ns/a" }))).toEqual({ key: "ns/a" });
});

test("a malformed traceparent does not cost the event", () => {
  expect(parsePayload({ v: 1, key: "ns/a", traceparent: "nonsense" })).toEqual({ key: "ns/a" });
});

test.each([
  undefined,
  null,
  "text",
  [],
  {},
  { key: "ns/a" },
  { v: 2, key: "ns/a" },
  { v: 1, key: "" },
  { v: 1, key: 7 },
  { v: 1, key: "later:a" },
  { v: 1, key: "x".repeat(513) },
])("%j is not a payload", (data) => {
  expect(parsePayload(data)).toBeUndefined();
});
