import { expect, test } from "vitest";
import { observedIP } from "./observed-ip.ts";

test.each([
  ["203.0.113.7\n", "203.0.113.7"],
  ["2001:db8::7", "2001:db8::7"],
  ['{"ip":"203.0.113.7"}', "203.0.113.7"],
  ['{"origin": "203.0.113.7", "url": "x"}', "203.0.113.7"],
  ['{"address":"203.0.113.7"}', "203.0.113.7"],
  ['{"ip":"no address","origin":"203.0.113.7"}', "203.0.113.7"],
  ['{"ip":7,"address":"203.0.113.7"}', "203.0.113.7"],
])("an echo of %j says %s", (body, ip) => {
  expect(observedIP(Buffer.from(body))).toBe(ip);
});

test.each(["", "hello", "<html>203.0.113.7</html>", "fe80::1%eth0", '{"ip":', "[1]", '{"ip":"203.0.113.700"}', "null"])(
  "%j says no address",
  (body) => {
    expect(observedIP(Buffer.from(body))).toBeUndefined();
  },
);
