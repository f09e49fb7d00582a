import { expect, test } from "vitest";
import { proxyUrl } from "./lease-answer.ts";

const proxy = {
  namespace: "crawl",
  name: "p1",
  uid: "u",
  provider: "lab",
  region: "",
  zone: "",
  port: 3128,
  egressIP: "",
};

test.each([
  ["needs no credentials", "127.0.0.2", undefined, "http://127.0.0.2:3128"],
  ["has an IPv6 address", "2001:db8::1", undefined, "http://[2001:db8::1]:3128"],
  [
    "has odd credentials",
    "p.test",
    { username: "a:b@", password: "/ü?#" },
    "http://a%3Ab%40:%2F%C3%BC%3F%23@p.test:3128",
  ],
])("the url of a proxy that %s is one that clients understand", (_, host, credentials, expected) => {
  expect(proxyUrl({ proxy: { ...proxy, host }, credentials })).toBe(expected);
  expect(new URL(expected).port).toBe("3128");
});
