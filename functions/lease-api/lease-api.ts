import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import { serializerCompiler, validatorCompiler } from "@fastify/type-provider-zod";
import { Census } from "#shared/lease/census.ts";
import { Proxies } from "#shared/lease/proxies.ts";
import { LeaseStore } from "#shared/lease/store.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import type { Logger } from "#shared/telemetry/logger.ts";
import { callerDecorator, createGuard } from "./caller.ts";
import type { LeaseApiSettings } from "./config.ts";
import { createHttp } from "./http.ts";
import { leaseRoutes } from "./lease-routes.ts";
import { proxyRoutes } from "./proxy-routes.ts";
import { TokensFile } from "./tokens-file.ts";

export interface LeaseApiDeps {
  /** Must fail, not wait, while Redis is away: `connectRedis({ whenDown: "fail" })`. Not closed here. */
  redis: RedisClient;
  settings: LeaseApiSettings;
  log: Logger;
  metrics: LeaseApiMetrics;
  /** 128 random bits or more, as url-safe text; from the system's generator unless a test says otherwise. */
  randomId?: () => string;
  /** A clock that never goes back. */
  monotonicMs?: () => number;
  /** How often the tokens file is looked at. */
  tokensPollMs?: number;
  /** Most time that requests under way get when the server stops. */
  closeMs?: number;
}

interface LeaseApiMetrics {
  /** Every answer; `route` is the pattern, e.g. `/v1/leases/:id`, and `none` where there is no such call. */
  request(answer: { method: string; route: string; status: number; seconds: number }): void;
  /** Something went wrong and was survived: `lease-tokens-file`. */
  problem(kind: string): void;
}

export interface LeaseApi {
  /** Host and port that it listens on. */
  address: { host: string; port: number };
  /** Finishes requests under way, for a bounded time, then ends every connection. */
  close(): Promise<void>;
}

const searchMs = 5_000;

/**
 * Starts the lease API. Throws an Error that names the tokens file when that is bad, or the port when it is taken;
 * Redis may still be away.
 */
export async function startLeaseApi(deps: LeaseApiDeps): Promise<LeaseApi> {
  const tokensFile = await openTokens(deps);
  const app = createHttp(deps.log);
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.decorateRequest(callerDecorator);
  app.addHook("onResponse", (request, reply, done) => {
    const route = request.routeOptions.url ?? "none";
    const seconds = reply.elapsedTime / 1000;
    deps.metrics.request({ method: request.method, route, status: reply.statusCode, seconds });
    done();
  });
  addRoutes(app, deps, tokensFile);
  const { LEASE_API_HOST: host, LEASE_API_PORT: port } = deps.settings;
  try {
    await app.listen({ host, port });
  } catch (error) {
    await tokensFile?.close();
    await app.close();
    throw new Error(`the lease API cannot listen on ${host}, LEASE_API_PORT ${port}: is it in use?`, { cause: error });
  }
  return {
    address: { host, port: portOf(app.server.address(), port) },
    close: async () => {
      await tokensFile?.close();
      const timer = setTimeout(() => app.server.closeAllConnections(), deps.closeMs ?? 10_000);
      await app.close();
      clearTimeout(timer);
    },
  };
}

function addRoutes(app: ReturnType<typeof createHttp>, deps: LeaseApiDeps, tokensFile: TokensFile | undefined): void {
  const { redis, randomId = () => randomBytes(16).toString("hex"), monotonicMs = () => performance.now() } = deps;
  const store = new LeaseStore({ redis, randomId, random: Math.random, monotonicMs });
  const census = new Census({ redis, monotonicMs });
  const requires = createGuard(() => tokensFile?.tokens);
  // Both stay good while Redis is away: a restart would help nobody, and the API answers 503 by itself.
  app.get("/healthz", () => ({ status: "ok" }));
  app.get("/readyz", () => ({ status: "ok" }));
  void app.register(
    (v1, _options, done) => {
      v1.addHook("onSend", (_request, reply, _payload, next) => {
        // Leases hold secrets, and yesterday's answer is wrong.
        void reply.header("cache-control", "no-store");
        next();
      });
      void v1.register(leaseRoutes, { store, census, requires, searchMs });
      void v1.register(proxyRoutes, { proxies: new Proxies({ redis, census }), requires });
      done();
    },
    { prefix: "/v1" },
  );
}

async function openTokens({ settings, log, metrics, tokensPollMs = 5_000 }: LeaseApiDeps) {
  const { LEASE_TOKENS_FILE: path, LEASE_API_INSECURE_NO_AUTH: noAuth } = settings;
  if (noAuth) {
    log.warn("LEASE_API_INSECURE_NO_AUTH is set: everybody who reaches the lease API is an administrator");
    return undefined;
  }
  if (path === undefined) throw new Error("LEASE_TOKENS_FILE is required unless LEASE_API_INSECURE_NO_AUTH is true");
  return TokensFile.open({
    path,
    pollMs: tokensPollMs,
    onReload: (tokens) => log.info({ tokens: tokens.length }, "the tokens of the lease API were reloaded"),
    onBad: (error) => {
      metrics.problem("lease-tokens-file");
      log.error({ reason: error.message }, "the tokens file is bad: the last good one stays in force");
    },
  });
}

function portOf(address: AddressInfo | string | null, fallback: number): number {
  return typeof address === "object" && address !== null ? address.port : fallback;
}
