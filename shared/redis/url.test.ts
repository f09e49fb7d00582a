import { expect, test } from "vitest";
import { parseRedisUrl } from "./url.ts";

const single = { kind: "single", tls: false, master: "", db: 0 };

test.each([
  ["redis://cache", { ...single, hosts: [{ host: "cache", port: 6379 }] }],
  [
    "redis://:p%40ss@127.0.0.1:7000/3",
    { ...single, hosts: [{ host: "127.0.0.1", port: 7000 }], db: 3, password: "p@ss" },
  ],
  ["redis://user:pw@cache/", { ...single, hosts: [{ host: "cache", port: 6379 }], username: "user", password: "pw" }],
  ["redis://pw@cache", { ...single, hosts: [{ host: "cache", port: 6379 }], password: "pw" }],
  ["redis://:a:b@cache", { ...single, hosts: [{ host: "cache", port: 6379 }], password: "a:b" }],
  ["rediss://[::1]:7000", { ...single, tls: true, hosts: [{ host: "::1", port: 7000 }] }],
  [
    "redis+sentinel://:pw@a,b:7000/main?sentinelPassword=s%2F1",
    {
      ...single,
      kind: "sentinel",
      master: "main",
      hosts: [
        { host: "a", port: 26379 },
        { host: "b", port: 7000 },
      ],
      password: "pw",
      sentinelPassword: "s/1",
    },
  ],
  [
    "rediss+cluster://:pw@a:1,b",
    {
      ...single,
      kind: "cluster",
      tls: true,
      hosts: [
        { host: "a", port: 1 },
        { host: "b", port: 6379 },
      ],
      password: "pw",
    },
  ],
])("%s is read", (url, target) => {
  expect(parseRedisUrl(url)).toEqual(target);
});

test.each([
  ["http://:secret@cache", /not a Redis url/],
  ["redis://:sec@ret@cache", /not a Redis url/],
  ["redis://:sec/ret@cache", /database/],
  ["redis://:secret%zz@cache", /percent-encoded/],
  ["redis://:secret@cache:99999", /host/],
  ["redis://:secret@ca che", /host/],
  ["redis://:secret@a,b", /several hosts/],
  ["redis://:secret@cache/one", /database/],
  ["redis+sentinel://:secret@a", /names its master/],
  ["redis+cluster://:secret@a/1", /one database/],
  ["redis://:secret@a?sentinelPassword=secret", /only a Sentinel url/],
])("%s is refused, saying what was expected and nothing of the url", (url, message) => {
  expect(() => parseRedisUrl(url)).toThrow(message);
  expect(() => parseRedisUrl(url)).toThrow(/expected redis:\/\//);
  expect(() => parseRedisUrl(url)).not.toThrow(/sec|ret@/);
});
