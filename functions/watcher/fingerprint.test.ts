import { expect, test } from "vitest";
import { finalizer } from "#shared/model/names.ts";
import type { Proxy } from "#shared/model/proxy.ts";
import { makeProxy } from "#test/fixtures/proxy.ts";
import { fingerprintOf, isWorthAJob } from "./fingerprint.ts";

const before = makeProxy({ metadata: { finalizers: ["other"], labels: { a: "1", b: "2" } } });

function worth(change: Partial<Proxy["metadata"]>, from: Proxy = before): boolean {
  const after = { ...from, metadata: { ...from.metadata, resourceVersion: "2", ...change } };
  return isWorthAJob(fingerprintOf(from), fingerprintOf(after));
}

test.each<[string, boolean, Partial<Proxy["metadata"]>]>([
  ["a status that changed is no job", false, {}],
  ["a spec that changed is a job", true, { generation: 2 }],
  ["a deletion is a job", true, { deletionTimestamp: "2026-12-01T01:00:00Z" }],
  ["a label is a job", true, { labels: { a: "1" } }],
  ["labels in another order are no job", false, { labels: { b: "2", a: "1" } }],
  ["an annotation of ours is a job", true, { annotations: { "crawl.example.com/replace": "1" } }],
  ["an annotation of others is no job", false, { annotations: { "kubectl.kubernetes.io/x": "1" } }],
  ["our own finalizer's arrival is no job", false, { finalizers: ["other", finalizer] }],
  ["another finalizer is a job", true, { finalizers: ["other", "more"] }],
  ["a new object of the same name is a job", true, { uid: "another" }],
])("%s", (_name, expected, change) => {
  expect(worth(change)).toBe(expected);
});

test("a finalizer of ours that somebody removed is a job", () => {
  const guarded = makeProxy();
  expect(worth({ finalizers: [] }, guarded)).toBe(true);
});

test("a Proxy that was never seen is a job", () => {
  expect(isWorthAJob(undefined, fingerprintOf(before))).toBe(true);
});
