import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { keys, member } from "#shared/model/keys.ts";
import { fleetEntry } from "#test/fakes/fleet-entry.ts";
import { anybody, LeaseBench, leaseStoreOn, seed } from "#test/lease-store.ts";
import { startRedis, type TestRedis } from "#test/redis.ts";

let server: TestRedis;
let bench: LeaseBench;

beforeAll(async () => {
  server = await startRedis();
  bench = new LeaseBench(server.url);
});

beforeEach(() => bench.reset());

afterAll(async () => {
  bench.close();
  await server.stop();
});

test("a lease says all about its proxy, and names one incarnation", async () => {
  await bench.register("p1", {
    incarnation: 3,
    region: "eu",
    zone: "eu-1",
    egressIP: "203.0.113.1",
    credentials: { username: "u", password: "secret" },
    seed: { ...seed, observedIP: "203.0.113.9" },
  });
  const before = await bench.now();
  const lease = await bench.granted({ owner: "worker-1", target: "shop.example", ttlMs: 60_000 });
  const { host, port } = fleetEntry();
  expect(lease).toMatchObject({
    tokenName: "crawler",
    owner: "worker-1",
    target: "shop.example",
    member: "p1:3",
    state: "active",
    credentials: { username: "u", password: "secret" },
    proxy: {
      namespace: "crawl",
      name: "p1",
      uid: "p1",
      region: "eu",
      zone: "eu-1",
      host,
      port,
      egressIP: "203.0.113.9",
    },
  });
  expect(lease.expiresAt - lease.acquiredAt).toBe(60_000);
  expect(lease.maxExpiresAt - lease.acquiredAt).toBe(24 * 3_600_000);
  expect(lease.acquiredAt).toBeGreaterThanOrEqual(before);
  const { token, credentials: _credentials, ...shown } = lease;
  expect(await bench.store.read(lease.id)).toEqual(shown);
  expect(JSON.stringify(await bench.redis.hgetall(keys.lease(lease.id)))).not.toContain(token);
});

test("nothing is free without proxies, and on an empty Redis", async () => {
  expect(await bench.acquire()).toEqual({ outcome: "nothing-free" });
});

test.each([
  ["is unhealthy", { seed: { ...seed, healthy: false } }],
  ["was never probed", { seed: undefined }],
  ["is draining", { draining: true }],
  ["may have no leases", { max: 0 }],
])("a proxy that %s is not leased", async (_, overrides) => {
  await bench.register("p1", overrides);
  expect(await bench.acquire()).toEqual({ outcome: "nothing-free" });
});

test("a proxy takes as many leases as it may have, and one more when one is released", async () => {
  await bench.register("p1", { max: 2 });
  const lease = await bench.granted();
  await bench.granted();
  expect(await bench.acquire()).toEqual({ outcome: "nothing-free" });
  expect(await bench.store.release(lease.id, anybody)).toBe("released");
  await bench.granted();
  expect(await bench.acquire()).toEqual({ outcome: "nothing-free" });
});

test("the proxy with the fewest leases is next, then the one that waited longest", async () => {
  await bench.register("a", { max: 9 });
  await bench.register("b", { max: 9 });
  const names = [];
  for (let i = 0; i < 4; i += 1) {
    names.push((await bench.granted()).proxy.name);
    // The rank tells grants apart that are 8 ms from each other.
    const from = await bench.now();
    await expect.poll(() => bench.now(), { interval: 2 }).toBeGreaterThan(from + 8);
  }
  expect(names).toEqual(["a", "b", "a", "b"]);
  expect(await bench.redis.hget(keys.record(member("a", 1)), "leases")).toBe("2");
});

test("ranks of 10,000 leases stay exact", async () => {
  await bench.register("p1", { max: 10_000 });
  const now = await bench.now();
  const index: (string | number)[] = [];
  for (let i = 0; i < 9_999; i += 1) index.push(now + 600_000, `lease-${i}`);
  await bench.redis.zadd(keys.leasesOfMember(member("p1", 1)), ...index);
  const lease = await bench.granted();
  expect(await bench.acquire()).toEqual({ outcome: "nothing-free" });
  const rank = BigInt((await bench.redis.hget(keys.record(member("p1", 1)), "rank")) ?? "");
  expect(rank).toBe(10_000n * 2n ** 39n + BigInt(lease.acquiredAt) / 8n);
});

test.each([
  ["namespace", { namespace: "other" }],
  ["provider", { provider: "other" }],
  ["region", { region: "other" }],
  ["zone", { zone: "other" }],
  ["labels", { labels: { tier: "other" } }],
])("a selector by %s takes only what matches", async (_, difference) => {
  await bench.register("a", { region: "eu", zone: "eu-1", labels: { tier: "gold", team: "x" } });
  await bench.register("b", { region: "eu", zone: "eu-1", labels: { tier: "gold" }, ...difference });
  expect((await bench.granted({ selector: difference })).proxy.name).toBe("b");
  expect(await bench.acquire({ selector: difference })).toEqual({ outcome: "nothing-free" });
});

test("a token with namespaces gets proxies of no other", async () => {
  await bench.register("a", { namespace: "theirs" });
  expect(await bench.acquire({ namespaces: ["mine"] })).toEqual({ outcome: "nothing-free" });
  expect(await bench.acquire({ namespaces: ["mine"], selector: { namespace: "theirs" } })).toEqual({
    outcome: "nothing-free",
  });
  await bench.register("b", { namespace: "mine" });
  expect((await bench.granted({ namespaces: ["mine"] })).proxy.name).toBe("b");
});

test("a rare label is found among more free proxies than one call looks at", async () => {
  await Promise.all(Array.from({ length: 400 }, (_, i) => bench.register(`p${i}`)));
  // Last by rank, so that only the search through the whole bucket finds them; a dozen, so that not all are in its first step.
  for (let i = 0; i < 12; i += 1) {
    await bench.register(`rare-${i}`, { labels: { tier: `gold-${i}` } });
    await bench.redis.zadd(keys.free("crawl|lab||"), 2 ** 52, member(`rare-${i}`, 1));
  }
  for (let i = 0; i < 12; i += 1) {
    const selector = { labels: { tier: `gold-${i}` } };
    expect((await bench.granted({ selector })).proxy.name).toBe(`rare-${i}`);
    expect(await bench.acquire({ selector })).toEqual({ outcome: "nothing-free" });
  }
});

test("one free proxy is found among more buckets than one call looks into", async () => {
  await Promise.all(
    Array.from({ length: 100 }, (_, i) => bench.register(`p${i}`, { zone: `z${i}`, max: i === 70 ? 1 : 0 })),
  );
  expect((await bench.granted()).proxy.name).toBe("p70");
  expect(await bench.acquire()).toEqual({ outcome: "nothing-free" });
});

test("the first proxy of a new bucket is leased although the buckets were read a moment ago", async () => {
  await bench.register("a");
  await bench.granted();
  await bench.register("b", { zone: "new" });
  expect((await bench.granted()).proxy.name).toBe("b");
});

test("an expired lease frees its capacity by Redis's clock, without any reaping", async () => {
  await bench.register("p1");
  const lease = await bench.granted({ ttlMs: 300 });
  await expect.poll(() => bench.acquire(), { interval: 10 }).toMatchObject({ outcome: "granted" });
  expect(await bench.now()).toBeGreaterThanOrEqual(lease.expiresAt);
  expect(await bench.store.read(lease.id)).toMatchObject({ id: lease.id, state: "expired" });
});

test("reaping frees at most as many as it is told, and gauges follow", async () => {
  await bench.register("p1", { max: 10 });
  const leases = [];
  for (let i = 0; i < 6; i += 1) leases.push(await bench.granted());
  for (const lease of leases) await bench.expire(lease);
  expect(await bench.store.reap(4)).toBe(4);
  expect(await bench.store.reap(4)).toBe(2);
  expect(await bench.store.reap(4)).toBe(0);
  expect(await bench.redis.hget(keys.record(member("p1", 1)), "leases")).toBe("0");
});

test("a grant gets through however many leases expired at once", async () => {
  await bench.register("p1");
  const past = (await bench.now()) - 1000;
  const index: (string | number)[] = [];
  for (let i = 0; i < 1_000; i += 1) index.push(past, `lease-${i}|gone:${i}`);
  await bench.redis.zadd(keys.leaseExpiry, ...index, past + 1, "last|p1:1");
  await bench.redis.zadd(keys.leasesOfMember(member("p1", 1)), past + 1, "last");
  await bench.redis.zrem(keys.free("crawl|lab||"), member("p1", 1));
  expect((await bench.granted()).proxy.name).toBe("p1");
});

test("an expired lease is freed even when its hash is gone", async () => {
  await bench.register("p1");
  const lease = await bench.granted({ ttlMs: 10 });
  await bench.redis.del(keys.lease(lease.id));
  await expect.poll(() => bench.acquire(), { interval: 10 }).toMatchObject({ outcome: "granted" });
});

test("all keys of a lease expire by themselves", async () => {
  await bench.register("p1", { max: 3 });
  await bench.granted({ ttlMs: 10_000 });
  const lease = await bench.granted({ ttlMs: 50_000 });
  await bench.granted({ ttlMs: 10_000 });
  const at = lease.expiresAt + 600_000;
  expect(await bench.redis.pexpiretime(keys.lease(lease.id))).toBe(at);
  expect(await bench.redis.pexpiretime(keys.leasesOfMember(member("p1", 1)))).toBe(at);
  expect(await bench.redis.pexpiretime(keys.leasesOfToken("crawler"))).toBe(at);
});

test("release is safe to repeat and leaves nothing behind", async () => {
  await bench.register("p1");
  const lease = await bench.granted();
  expect(await bench.store.release(lease.id, anybody)).toBe("released");
  expect(await bench.store.release(lease.id, anybody)).toBe("gone");
  expect(await bench.store.read(lease.id)).toBeUndefined();
  expect((await bench.redis.keys("*lease*")).filter((key) => !key.includes(":px:"))).toEqual([]);
});

test("only who took a lease can release it", async () => {
  await bench.register("p1");
  const { id, token } = await bench.granted();
  expect(await bench.store.release(id, { tokenName: "other", leaseToken: token })).toBe("not-owner");
  expect(await bench.store.release(id, { tokenName: "crawler", leaseToken: "guess" })).toBe("wrong-token");
  expect(await bench.store.release(id, { tokenName: "crawler", leaseToken: token })).toBe("released");
});

test("a token gets no more leases than its quota, counting only those that run", async () => {
  await bench.register("p1", { max: 10 });
  const first = await bench.granted({ quota: 2 });
  await bench.granted({ quota: 2 });
  expect(await bench.acquire({ quota: 2 })).toEqual({ outcome: "quota" });
  expect(await bench.acquire({ quota: 2, tokenName: "other" })).toMatchObject({ outcome: "granted" });
  await bench.expire(first);
  expect(await bench.acquire({ quota: 2 })).toMatchObject({ outcome: "granted" });
});

test("capacity holds under concurrent acquires and releases over several connections", async () => {
  const capacity = { a: 1, b: 2, c: 5 };
  for (const [uid, max] of Object.entries(capacity)) await bench.register(uid, { max });
  const clients = Array.from({ length: 4 }, () => new Redis(server.url));
  const held = new Map<string, number>();
  let most = 0;
  try {
    await Promise.all(
      Array.from({ length: 24 }, async (_, i) => {
        const client = clients[i % clients.length];
        if (client === undefined) throw new Error("no client");
        const mine = leaseStoreOn(client);
        for (let round = 0; round < 30; round += 1) {
          const result = await bench.acquire({}, mine);
          if (result.outcome !== "granted") continue;
          const { name } = result.lease.proxy;
          held.set(name, (held.get(name) ?? 0) + 1);
          for (const [uid, max] of Object.entries(capacity)) expect(held.get(uid) ?? 0).toBeLessThanOrEqual(max);
          most = Math.max(
            most,
            [...held.values()].reduce((sum, count) => sum + count, 0),
          );
          // Counted down first: between the two, another client may rightly get the slot.
          await Promise.resolve();
          held.set(name, (held.get(name) ?? 0) - 1);
          await mine.release(result.lease.id, anybody);
        }
      }),
    );
    expect(await bench.redis.zcard(keys.leaseExpiry)).toBe(0);
  } finally {
    for (const client of clients) client.disconnect();
  }
  expect(most).toBeGreaterThan(1);
});

test("lists show what matches, page by page, without secrets", async () => {
  await bench.register("a", { max: 300 });
  await bench.register("b", { max: 300, namespace: "other" });
  for (let i = 0; i < 150; i += 1) {
    await bench.granted({ owner: i % 2 === 0 ? "even" : "odd", selector: { namespace: "crawl" } });
  }
  await bench.granted({ owner: "even", target: "shop.example", tokenName: "second", selector: { namespace: "other" } });
  const all = async (filter: Parameters<LeaseBench["store"]["list"]>[0]) => {
    const ids = new Set<string>();
    let cursor: string | undefined;
    do {
      const page = await bench.store.list(filter, cursor);
      for (const lease of page.leases) ids.add(lease.id);
      expect(JSON.stringify(page)).not.toMatch(/token":|tokenHash|credentials/);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return ids.size;
  };
  expect(await all({})).toBe(151);
  expect(await all({ owner: "even" })).toBe(76);
  expect(await all({ target: "shop.example" })).toBe(1);
  expect(await all({ proxy: "crawl/a" })).toBe(150);
  expect(await all({ proxy: "crawl/none" })).toBe(0);
  expect(await all({ tokenName: "second" })).toBe(1);
  expect(await all({ namespaces: ["other"] })).toBe(1);
});

test("a search that takes too long says so", async () => {
  await bench.register("p1");
  await expect(
    bench.store.acquire({ selector: {}, ttlMs: 1000, tokenName: "crawler" }, AbortSignal.abort()),
  ).rejects.toMatchObject({ code: "SearchTooLong" });
});
