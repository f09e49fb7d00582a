import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Fleet } from "#shared/fleet/fleet.ts";
import { fleetEntry } from "#test/fakes/fleet-entry.ts";
import { startTestLeaseApi } from "#test/lease-api.ts";
import { startRedis, type TestRedis } from "#test/redis.ts";

let server: TestRedis;
let redis: Redis;
let api: Awaited<ReturnType<typeof startTestLeaseApi>>;
const token = "secret";

beforeEach(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
  redis.on("error", () => undefined); // it is ended on purpose
  api = await startTestLeaseApi({ redisUrl: server.url, tokens: [{ name: "a", secret: token, scopes: ["admin"] }] });
  await expect.poll(async () => (await list()).status, { timeout: 20_000 }).toBe(200);
});

afterEach(async () => {
  await api.stop();
  redis.disconnect();
  await server.stop();
});

const list = () => api.call("GET", "/v1/leases", { token });
const acquire = () => api.call("POST", "/v1/leases", { token, body: {} });
const seed = { healthy: true, message: "It answered.", at: new Date(1000) };
const unavailable = { status: 503, json: { type: "urn:egress-proxies:problem:redis-unavailable" } };

test("while Redis is gone every call answers 503, the API stays ready, and it recovers by itself", async () => {
  process.kill(server.pid, "SIGKILL");
  await expect.poll(list, { timeout: 20_000 }).toMatchObject(unavailable);
  const answer = await acquire();
  expect(answer).toMatchObject(unavailable);
  expect(answer.headers.get("retry-after")).toMatch(/^\d+$/);
  for (const url of ["/v1/leases/x", "/v1/proxies", "/v1/proxies/crawl/p1"]) {
    expect(await api.call("GET", url, { token }), url).toMatchObject(unavailable);
  }
  expect(await api.call("DELETE", "/v1/leases/x", { token })).toMatchObject(unavailable);
  expect((await api.call("GET", "/readyz")).status).toBe(200);
  expect((await api.call("GET", "/healthz")).status).toBe(200);

  const options = ["--port", `${server.port}`, "--bind", "127.0.0.1", "--requirepass", server.password, "--save", ""];
  const again = spawn("redis-server", options, { stdio: "ignore" });
  try {
    await expect.poll(async () => (await list()).status, { timeout: 20_000 }).toBe(200);
    expect((await acquire()).json).toMatchObject({ type: "urn:egress-proxies:problem:nothing-free" });
  } finally {
    again.kill("SIGKILL");
    await once(again, "exit");
  }
});

test("while Redis is paused calls answer 503, and afterwards it goes on", async () => {
  await new Fleet({ redis }).upsert(fleetEntry({ seed }), 1);
  process.kill(server.pid, "SIGSTOP");
  try {
    expect(await acquire()).toMatchObject(unavailable);
  } finally {
    process.kill(server.pid, "SIGCONT");
  }
  await expect.poll(async () => (await acquire()).status, { timeout: 20_000 }).toBe(201);
});

test("a stop finishes the request under way and refuses new connections", async () => {
  await new Fleet({ redis }).upsert(fleetEntry({ seed }), 1);
  const socket = connect(api.port, "127.0.0.1");
  let answer = "";
  socket.on("data", (data) => (answer += data.toString()));
  const body = '{"owner":"late"}';
  const head = ["POST /v1/leases HTTP/1.1", "Host: x", `Authorization: Bearer ${token}`];
  const lines = [...head, "Content-Type: application/json", `Content-Length: ${body.length}`, "Expect: 100-continue"];
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  // The server says so once the request is under way.
  await expect.poll(() => answer, { timeout: 20_000 }).toContain("100 Continue");
  answer = "";
  const closed = api.close();
  await expect
    .poll(() =>
      list().then(
        () => "answered",
        () => "refused",
      ),
    )
    .toBe("refused");
  socket.write(body);
  await once(socket, "close");
  expect(answer).toMatch(/^HTTP\/1\.1 201 /);
  await closed;
});
