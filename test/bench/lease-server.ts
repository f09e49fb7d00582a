import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { fastify } from "fastify";
import { startLeaseApi } from "#functions/lease-api/lease-api.ts";
import { connectRedis } from "#shared/redis/connect.ts";
import { Script } from "#shared/redis/script.ts";
import { createLogger } from "#shared/telemetry/logger.ts";
import { Metrics } from "#shared/telemetry/metrics.ts";

/**
 * The server of `bench lease`, a process of its own as in production, so that the clients cost it nothing. Serves the
 * lease API as its role does, and the two ceilings beside it. Arguments: url of Redis, path of the tokens file.
 * Ends with its parent.
 */
const [redisUrl = "", tokensPath = ""] = process.argv.slice(2);
process.once("disconnect", () => process.exit());

const redis = connectRedis({ url: redisUrl, name: "bench-lease", whenDown: "fail", onError: () => undefined });
await once(redis, "ready");

const metrics = new Metrics();
const api = await startLeaseApi({
  redis,
  settings: {
    LEASE_API_HOST: "127.0.0.1",
    LEASE_API_PORT: 0,
    LEASE_TOKENS_FILE: tokensPath,
    LEASE_API_INSECURE_NO_AUTH: false,
  },
  log: createLogger({ levels: { level: "info", components: {} }, pretty: false, destination: process.stderr }),
  metrics: {
    request: ({ method, route, status }) => metrics.leaseRequests.inc({ method, route, status }),
    problem: (kind) => metrics.problems.inc({ kind }),
  },
});

const trivial = new Script(new URL("./trivial.lua", import.meta.url));
const bare = fastify({ logger: false });
bare.post("/bare", () => ({ answer: 1 }));
bare.post("/evalsha", async () => ({ answer: await trivial.run(redis, [], []) }));
await bare.listen({ host: "127.0.0.1", port: 0 });

process.send?.({ apiPort: api.address.port, barePort: portOf(bare.server.address()) });

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") throw new Error("the bare server has no port");
  return address.port;
}
