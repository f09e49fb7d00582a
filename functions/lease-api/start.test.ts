import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseEnvironment } from "#shared/process/environment.ts";
import { connectRedis, type RedisClient } from "#shared/redis/connect.ts";
import { createLogger } from "#shared/telemetry/logger.ts";
import { startRedis, type TestRedis } from "#test/redis.ts";
import { leaseApiSettings } from "./config.ts";
import { startLeaseApi } from "./lease-api.ts";

let server: TestRedis;
let redis: RedisClient;

beforeAll(async () => {
  server = await startRedis();
  redis = connectRedis({ url: server.url, name: "test", onError: () => undefined, whenDown: "fail" });
  await once(redis, "ready");
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const lines: string[] = [];
const log = createLogger({
  levels: { level: "info", components: {} },
  pretty: false,
  destination: { write: (line) => lines.push(line) },
});
const metrics = { request: () => undefined, problem: () => undefined };
const open = { LEASE_API_HOST: "127.0.0.1", LEASE_API_PORT: "0", LEASE_API_INSECURE_NO_AUTH: "true" };
const start = (env: Record<string, string>, closeMs = 10_000) =>
  startLeaseApi({ redis, log, metrics, settings: parseEnvironment(leaseApiSettings, env), closeMs });

test("without a tokens file the settings are refused, unless no tokens are wanted", () => {
  expect(() => parseEnvironment(leaseApiSettings, {})).toThrow("LEASE_TOKENS_FILE: is required");
  expect(parseEnvironment(leaseApiSettings, { LEASE_TOKENS_FILE: "/f" })).toMatchObject({
    LEASE_API_HOST: "0.0.0.0",
    LEASE_API_PORT: 8090,
    LEASE_API_INSECURE_NO_AUTH: false,
  });
});

test("without tokens everybody is served, and the log warns", async () => {
  const api = await start(open);
  const answer = await fetch(`http://127.0.0.1:${api.address.port}/v1/proxies`);
  expect(answer.status).toBe(200);
  expect(lines.join("")).toContain("LEASE_API_INSECURE_NO_AUTH is set");
  await answer.text();
  await api.close();
});

test("a missing tokens file ends the start, naming the path", async () => {
  await expect(start({ LEASE_TOKENS_FILE: "/nowhere/tokens.yaml" })).rejects.toThrow("/nowhere/tokens.yaml");
});

test("a port in use ends the start, naming the setting", async () => {
  const api = await start(open);
  await expect(start({ ...open, LEASE_API_PORT: `${api.address.port}` })).rejects.toThrow(
    `LEASE_API_PORT ${api.address.port}`,
  );
  await api.close();
});

test("a client that never finishes its request does not hold up a stop for ever", async () => {
  const api = await start(open, 50);
  const socket = connect(api.address.port, "127.0.0.1");
  let answer = "";
  socket.on("data", (data) => (answer += data.toString()));
  socket.on("error", () => undefined); // it is cut
  socket.write("POST /v1/leases HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n");
  socket.write("Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n");
  await expect.poll(() => answer).toContain("100 Continue");
  const cut = once(socket, "close");
  await api.close();
  await cut;
  expect(answer).toBe("HTTP/1.1 100 Continue\r\n\r\n");
});
