import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { startLeaseApi } from "#functions/lease-api/lease-api.ts";
import { connectRedis } from "#shared/redis/connect.ts";
import { createLogger } from "#shared/telemetry/logger.ts";

export interface TestToken {
  name: string;
  /** What the client presents; the file gets its hash. */
  secret: string;
  scopes: string[];
  namespaces?: string[];
  maxLeases?: number;
}

/** The text of a tokens file. JSON is YAML. */
export function tokensFile(tokens: readonly TestToken[]): string {
  const hash = (secret: string): string => createHash("sha256").update(secret).digest("hex");
  return JSON.stringify({ tokens: tokens.map(({ secret, ...token }) => ({ ...token, sha256: hash(secret) })) });
}

/**
 * A lease API on a free loopback port, with a connection of its own to the Redis that is given. `log` collects every
 * line, debug included; `problems` what was survived.
 */
export async function startTestLeaseApi(options: { redisUrl: string; tokens: readonly TestToken[] }) {
  const dir = await mkdtemp(path.join(tmpdir(), "lease-api-"));
  const file = path.join(dir, "tokens.yaml");
  await writeFile(file, tokensFile(options.tokens));
  const log: string[] = [];
  const problems: string[] = [];
  const requests: string[] = [];
  const redis = connectRedis({ url: options.redisUrl, name: "test", onError: () => undefined, whenDown: "fail" });
  await once(redis, "ready");
  let clock = 0;
  const levels = { level: "trace", components: {} };
  const api = await startLeaseApi({
    redis,
    settings: {
      LEASE_API_HOST: "127.0.0.1",
      LEASE_API_PORT: 0,
      LEASE_TOKENS_FILE: file,
      LEASE_API_INSECURE_NO_AUTH: false,
    },
    log: createLogger({ levels, pretty: false, destination: { write: (line) => log.push(line) } }),
    metrics: {
      request: ({ method, route, status }) => requests.push(`${method} ${route} ${status}`),
      problem: (kind) => problems.push(kind),
    },
    tokensPollMs: 20,
    // Longer than any test: a connection that holds up the stop fails the test instead of being cut.
    closeMs: 600_000,
    // Every look at the clock is much later: what is remembered for a moment must not leak into the next test.
    monotonicMs: () => (clock += 60_000),
  });
  const base = `http://127.0.0.1:${api.address.port}`;
  return {
    base,
    file,
    log,
    problems,
    requests,
    port: api.address.port,
    /** One request. A string body is sent as it is. */
    async call(method: string, url: string, given: { token?: string; body?: unknown; headers?: object } = {}) {
      const { token, body, headers } = given;
      const response = await fetch(`${base}${url}`, {
        method,
        headers: {
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      const json: unknown = text === "" ? undefined : JSON.parse(text);
      return { status: response.status, headers: response.headers, json, text };
    },
    async stop() {
      await api.close();
      redis.disconnect();
      await rm(dir, { recursive: true, force: true });
    },
    close: () => api.close(),
  };
}
