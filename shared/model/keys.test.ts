import { expect, test } from "vitest";
import { bucket, parseBucket } from "./keys.ts";

test("a bucket's name can be taken apart again, whatever a user calls a region or a zone", () => {
  for (const odd of ["", "eu|west", "a%7Cb", "ü ", "%", "🌍", "*:{}"]) {
    const parts = { namespace: "crawl", provider: "lab", region: odd, zone: `${odd}1` };
    expect(parseBucket(bucket(parts))).toEqual(parts);
  }
});

test("places that differ never share a bucket", () => {
  const of = (region: string, zone: string) => bucket({ namespace: "crawl", provider: "lab", region, zone });
  expect(of("a|b", "")).not.toBe(of("a", "b"));
});
