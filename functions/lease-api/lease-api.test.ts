import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { Fleet } from "#shared/fleet/fleet.ts";
import type { FleetEntry } from "#shared/fleet/fleet-entry.ts";
import { fleetEntry } from "#test/fakes/fleet-entry.ts";
import { startTestLeaseApi } from "#test/lease-api.ts";
import { startRedis, type TestRedis } from "#test/redis.ts";

const tokens = [
  { name: "crawler-a", secret: "secret-a", scopes: ["read", "lease"] },
  { name: "crawler-b", secret: "secret-b", scopes: ["lease"], namespaces: ["crawl"], maxLeases: 2 },
  { name: "monitor", secret: "secret-read", scopes: ["read"], namespaces: ["crawl"] },
  { name: "operator", secret: "secret-admin", scopes: ["admin"] },
  { name: "team", secret: "secret-team", scopes: ["admin"], namespaces: ["team"] },
];

let server: TestRedis;
let redis: Redis;
let api: Awaited<ReturnType<typeof startTestLeaseApi>>;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
  api = await startTestLeaseApi({ redisUrl: server.url, tokens });
});

beforeEach(() => redis.flushall());

afterAll(async () => {
  await api.stop();
  redis.disconnect();
  await server.stop();
});

const credentials = { username: "us:er", password: "pass@word" };
const seed = { healthy: true, message: "It answered.", at: new Date(1000) };

async function register(uid: string, overrides: Partial<FleetEntry> = {}): Promise<void> {
  await new Fleet({ redis }).upsert(fleetEntry({ uid, name: uid, seed, credentials, ...overrides }), 1);
}

const granted = z.looseObject({ id: z.string(), token: z.string() });
async function acquire(token = "secret-a", body: object = {}) {
  const answer = await api.call("POST", "/v1/leases", { token, body });
  return granted.parse(answer.json);
}

const problem = (code: string) => ({ type: `urn:egress-proxies:problem:${code}` });

test("a proxy is leased, read, listed and released", async () => {
  await register("p1", { egressIP: "203.0.113.1" });
  const body = { target: "shop.example", ttlSeconds: 60, owner: "worker-1", selector: { namespace: "crawl" } };
  const answer = await api.call("POST", "/v1/leases", { token: "secret-a", body });
  expect(answer.status).toBe(201);
  expect(answer.headers.get("cache-control")).toBe("no-store");
  const { id, token } = granted.parse(answer.json);
  expect(answer.headers.get("location")).toBe(`/v1/leases/${id}`);
  expect(answer.json).toMatchObject({
    owner: "worker-1",
    target: "shop.example",
    state: "active",
    proxy: {
      namespace: "crawl",
      name: "p1",
      egressIP: "203.0.113.1",
      url: "http://us%3Aer:pass%40word@127.0.0.2:3128",
    },
  });

  const read = await api.call("GET", `/v1/leases/${id}`, { token: "secret-a" });
  expect(read.json).toMatchObject({ id, owner: "worker-1", proxy: { name: "p1" } });
  const list = await api.call("GET", "/v1/leases?owner=worker-1&target=shop.example&proxy=crawl/p1", {
    token: "secret-a",
  });
  expect(list.json).toEqual({ leases: [read.json] });
  expect(read.text + list.text).not.toMatch(/pass|"token"|url/);

  const release = () =>
    api.call("DELETE", `/v1/leases/${id}`, { token: "secret-a", headers: { "Lease-Token": token } });
  expect(await release()).toMatchObject({ status: 204, text: "" });
  expect(await release()).toMatchObject({ status: 204 });
  expect(await api.call("GET", `/v1/leases/${id}`, { token: "secret-a" })).toMatchObject({
    status: 404,
    json: problem("lease-not-found"),
  });
});

test("no body asks for any proxy, for 300 seconds", async () => {
  await register("p1");
  const answer = await api.call("POST", "/v1/leases", { token: "secret-a" });
  expect(answer.status).toBe(201);
  const times = z.object({ acquiredAt: z.string(), expiresAt: z.string() }).parse(answer.json);
  expect(Date.parse(times.expiresAt) - Date.parse(times.acquiredAt)).toBe(300_000);
});

test("nothing free says how many there are and why, and when to come back", async () => {
  await register("p1");
  await register("p2", { seed: { ...seed, healthy: false } });
  await register("p3", { draining: true });
  await register("p4", { namespace: "other" });
  await acquire("secret-b");
  const answer = await api.call("POST", "/v1/leases", { token: "secret-b", body: {} });
  expect(answer.status).toBe(503);
  expect(answer.headers.get("retry-after")).toMatch(/^\d+$/);
  expect(answer.json).toMatchObject(problem("nothing-free"));
  expect(answer.json).toMatchObject({ counts: { total: 3, matching: 3, full: 1, unhealthy: 1, draining: 1 } });
});

test("a token gets no more leases than its quota, and is told when to come back", async () => {
  await register("p1", { max: 5 });
  await acquire("secret-b");
  await acquire("secret-b");
  const answer = await api.call("POST", "/v1/leases", { token: "secret-b", body: {} });
  expect(answer).toMatchObject({ status: 429, json: problem("quota-exceeded") });
  expect(answer.headers.get("retry-after")).toMatch(/^\d+$/);
});

test("proxies are listed and read without credentials", async () => {
  await register("p1", { labels: { tier: "gold" }, max: 3 });
  await register("p2", { provider: "gcp" });
  const list = await api.call("GET", "/v1/proxies?provider=lab&state=free&namespace=crawl", { token: "secret-read" });
  const one = await api.call("GET", "/v1/proxies/crawl/p1", { token: "secret-read" });
  expect(list.json).toEqual({ proxies: [one.json] });
  expect(one.json).toMatchObject({ name: "p1", state: "free", leases: 0, maxLeases: 3, labels: { tier: "gold" } });
  expect(list.text + one.text).not.toContain("pass");
  expect(await api.call("GET", "/v1/proxies/crawl/none", { token: "secret-read" })).toMatchObject({
    status: 404,
    json: problem("proxy-not-found"),
  });
});

test.each([
  ["nobody", "POST", "/v1/leases", undefined, 401, "unauthorized"],
  ["nobody", "GET", "/v1/leases", undefined, 401, "unauthorized"],
  ["nobody", "GET", "/v1/leases/x", undefined, 401, "unauthorized"],
  ["nobody", "DELETE", "/v1/leases/x", undefined, 401, "unauthorized"],
  ["nobody", "GET", "/v1/proxies", undefined, 401, "unauthorized"],
  ["nobody", "GET", "/v1/proxies/crawl/p1", undefined, 401, "unauthorized"],
  ["an unknown token", "POST", "/v1/leases", "guess", 401, "unauthorized"],
  ["a reader", "POST", "/v1/leases", "secret-read", 403, "missing-scope"],
  ["a reader", "DELETE", "/v1/leases/x", "secret-read", 403, "missing-scope"],
  ["a reader", "GET", "/v1/leases", "secret-read", 200, undefined],
  ["a reader", "GET", "/v1/proxies", "secret-read", 200, undefined],
  ["a reader of another namespace", "GET", "/v1/proxies?namespace=other", "secret-read", 403, "namespace-not-allowed"],
  ["a reader of another namespace", "GET", "/v1/proxies/other/p", "secret-read", 403, "namespace-not-allowed"],
  ["a reader of another namespace", "GET", "/v1/leases?proxy=other/p", "secret-read", 403, "namespace-not-allowed"],
  ["a crawler", "GET", "/v1/proxies", "secret-b", 403, "missing-scope"],
  ["a crawler", "GET", "/v1/leases", "secret-b", 200, undefined],
  ["a crawler without the Lease-Token", "DELETE", "/v1/leases/x", "secret-b", 400, "invalid-request"],
  ["an administrator", "GET", "/v1/proxies", "secret-admin", 200, undefined],
  ["an administrator", "GET", "/v1/leases", "secret-admin", 200, undefined],
  ["an administrator", "DELETE", "/v1/leases/x", "secret-admin", 204, undefined],
])("%s calling %s %s", async (_, method, url, token, status, code) => {
  const answer = await api.call(method, url, token === undefined ? {} : { token });
  expect(answer.status).toBe(status);
  if (code !== undefined) expect(answer.json).toMatchObject(problem(code));
  if (status === 401) expect(answer.headers.get("www-authenticate")).toBe("Bearer");
});

test.each(["", "Bearer", "Basic c2VjcmV0LWE6", "Bearer secret-a secret-b", "secret-a"])(
  "the authorization %j is nobody's",
  async (authorization) => {
    const answer = await api.call("GET", "/v1/leases", { headers: { authorization } });
    expect(answer).toMatchObject({ status: 401, json: problem("unauthorized") });
  },
);

test("a token for namespaces gets proxies of no other", async () => {
  await register("p1", { namespace: "other" });
  const named = { token: "secret-b", body: { selector: { namespace: "other" } } };
  expect(await api.call("POST", "/v1/leases", named)).toMatchObject({
    status: 403,
    json: problem("namespace-not-allowed"),
  });
  expect(await api.call("POST", "/v1/leases", { token: "secret-b", body: {} })).toMatchObject({
    status: 503,
    json: { counts: { total: 0, matching: 0 } },
  });
});

test("a lease is released only by the token that took it, with its Lease-Token, or by an administrator", async () => {
  await register("p1", { max: 9 });
  const { id, token } = await acquire("secret-a");
  const release = (who: string, leaseToken?: string) =>
    api.call("DELETE", `/v1/leases/${id}`, {
      token: who,
      ...(leaseToken === undefined ? {} : { headers: { "Lease-Token": leaseToken } }),
    });
  expect(await release("secret-b", token)).toMatchObject({ status: 403, json: problem("not-owner") });
  expect(await release("secret-a", "guess")).toMatchObject({ status: 403, json: problem("wrong-lease-token") });
  expect(await release("secret-admin", "guess")).toMatchObject({ status: 403, json: problem("wrong-lease-token") });
  expect(await release("secret-team")).toMatchObject({ status: 403, json: problem("namespace-not-allowed") });
  expect(await release("secret-a")).toMatchObject({ status: 400, json: { errors: [{ field: "Lease-Token" }] } });
  expect((await api.call("GET", `/v1/leases/${id}`, { token: "secret-a" })).status).toBe(200);
  expect((await release("secret-admin")).status).toBe(204);
  expect((await api.call("GET", `/v1/leases/${id}`, { token: "secret-a" })).status).toBe(404);
});

test("a token that may only lease sees its own leases, one that may read those of its namespaces", async () => {
  await register("p1", { max: 9 });
  await register("p2", { max: 9, namespace: "other" });
  const own = await acquire("secret-b");
  const foreign = await acquire("secret-a", { selector: { namespace: "crawl" } });
  const hidden = await acquire("secret-a", { selector: { namespace: "other" } });
  const listed = async (token: string) => {
    const { json } = await api.call("GET", "/v1/leases", { token });
    const { leases } = z.object({ leases: z.array(z.object({ id: z.string() })) }).parse(json);
    return leases.map(({ id }) => id).sort();
  };
  expect(await listed("secret-b")).toEqual([own.id]);
  expect(await listed("secret-read")).toEqual([own.id, foreign.id].sort());
  expect(await listed("secret-admin")).toEqual([own.id, foreign.id, hidden.id].sort());
  const status = async (token: string, id: string) => (await api.call("GET", `/v1/leases/${id}`, { token })).status;
  expect(await status("secret-b", own.id)).toBe(200);
  expect(await status("secret-b", foreign.id)).toBe(404);
  expect(await status("secret-read", foreign.id)).toBe(200);
  expect(await status("secret-read", hidden.id)).toBe(404);
});

test("health and readiness need no token", async () => {
  expect(await api.call("GET", "/healthz")).toMatchObject({ status: 200 });
  expect(await api.call("GET", "/readyz")).toMatchObject({ status: 200 });
  expect((await api.call("GET", "/metrics")).status).toBe(404);
});

test("neither tokens nor credentials reach the log", async () => {
  await register("p1");
  const { id, token } = await acquire("secret-a", { owner: "worker-1" });
  await api.call("DELETE", `/v1/leases/${id}`, { token: "secret-b", headers: { "Lease-Token": token } });
  await api.call("DELETE", `/v1/leases/${id}`, { token: "secret-a", headers: { "Lease-Token": token } });
  await api.call("POST", "/v1/leases", { token: "secret-a", body: '{"owner": "secret-a' });
  // A record that cannot be read makes an internal error.
  await redis.hset("{ep}:px:p1:1", "max", "1", "credentials", "secret-broken");
  expect(await api.call("POST", "/v1/leases", { token: "secret-a" })).toMatchObject({
    status: 500,
    json: problem("internal"),
  });
  const text = api.log.join("");
  expect(text).toContain('"a request failed"');
  for (const secret of ["secret-", token, "pass@word", "pass%40word"]) expect(text).not.toContain(secret);
  expect(api.requests).toContain("POST /v1/leases 500");
});
