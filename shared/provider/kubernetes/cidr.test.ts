import { expect, test } from "vitest";
import { type Cidr, formatCidr, parseCidr, subtract } from "./cidr.ts";

function cidr(text: string): Cidr {
  const parsed = parseCidr(text);
  if (typeof parsed === "string") throw new Error(parsed);
  return parsed;
}

test.each([
  ["10.0.0.0/8", "10.0.0.0/8"],
  ["0.0.0.0/0", "0.0.0.0/0"],
  ["::1/128", "0:0:0:0:0:0:0:1/128"],
  ["fd00:1::/32", "fd00:1:0:0:0:0:0:0/32"],
  ["64:ff9b::10.0.0.0/104", "64:ff9b:0:0:0:0:a00:0/104"],
])("%s is read as %s", (text, expected) => {
  expect(formatCidr(cidr(text))).toBe(expected);
});

test.each([
  ["10.0.0.1/8", "write 10.0.0.0/8"],
  ["10.0.0.0", "expected a block"],
  ["10.0.0.0/33", "at most /32"],
  ["localhost/8", "expected a block"],
  ["::ffff:10.0.0.0/104", "IPv4"],
  ["::/0", "IPv4"],
])("%s is refused", (text, expected) => {
  expect(parseCidr(text)).toContain(expected);
});

test("a hole is cut out exactly", () => {
  const left = subtract([cidr("127.0.0.0/8")], [cidr("127.0.0.9/32")]);
  expect(left).toHaveLength(24);
  const size = left.reduce((sum, block) => sum + 2 ** (32 - block.prefix), 0);
  expect(size).toBe(2 ** 24 - 1);
  expect(left.map(formatCidr)).toContain("127.0.0.8/32");
  expect(left.map(formatCidr)).not.toContain("127.0.0.9/32");
});

test("a hole that is larger than the block leaves nothing, and one of the other family leaves it whole", () => {
  expect(subtract([cidr("10.0.0.0/8")], [cidr("0.0.0.0/0")])).toEqual([]);
  expect(subtract([cidr("10.0.0.0/8")], [cidr("fc00::/7")])).toEqual([cidr("10.0.0.0/8")]);
});
