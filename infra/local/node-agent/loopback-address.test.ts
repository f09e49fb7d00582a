import { expect, test } from "vitest";
import { chooseAddress } from "./loopback-address.ts";

test("an address follows from the uid, so that it is the same after a restart", () => {
  const address = chooseAddress("uid-1", undefined, new Set());
  expect(address).toMatch(/^127\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.\d+\.\d+$/);
  expect(chooseAddress("uid-1", undefined, new Set())).toBe(address);
});

test("an address that a Pod has already stays, unless it is not ours or taken", () => {
  const other = chooseAddress("uid-1", undefined, new Set());
  expect(chooseAddress("uid-1", "127.70.1.2", new Set())).toBe("127.70.1.2");
  expect(chooseAddress("uid-1", "127.70.1.2", new Set(["127.70.1.2"]))).toBe(other);
  expect(chooseAddress("uid-1", "10.0.0.5", new Set())).toBe(other);
  expect(chooseAddress("uid-1", "127.0.0.1", new Set())).toBe(other);
});

test("many Pods get different addresses", () => {
  const taken = new Set<string>();
  for (let i = 0; i < 5000; i += 1) taken.add(chooseAddress(`uid-${i}`, undefined, taken));
  expect(taken.size).toBe(5000);
});

test("of two Pods that would get the same address the second gets the next", () => {
  const first = chooseAddress("uid-1", undefined, new Set());
  expect(chooseAddress("uid-1", undefined, new Set([first]))).not.toBe(first);
});
