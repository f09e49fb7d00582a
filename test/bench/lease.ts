import { Pool } from "undici";
import { z } from "zod";
import { Fleet } from "#shared/fleet/fleet.ts";
import { fleetEntry } from "#test/fakes/fleet-entry.ts";
import { seed } from "#test/lease-store.ts";
import type { Bench, BenchContext } from "./bench.ts";
import { startBenchRedis } from "./bench-redis.ts";
import { type LeaseServer, startLeaseServer } from "./lease-rig.ts";
import { type Load, load, percentilesOf, rateOf, type Timed } from "./load.ts";
import { type Table, whole } from "./table.ts";

/** The lease API against what Fastify and one script can do at best. */
export const leaseBench: Bench = {
  summary: "acquire and release against a bare route and a bare script",
  defaultSeconds: 36,
  run: benchLease,
};

const sizes = [100, 1_000, 10_000];
/** Fewer than proxies, so that something is always free. */
const clients = 32;
const rounds = 4;
const warmUpMs = 1_500;
/** Registrations under way at once. */
const registerAtOnce = 200;

/** What is measured, and what it gave at one size. */
interface Kind {
  name: string;
  turn: (timed: Timed) => Promise<void>;
  loads: Load[];
}

async function benchLease({ seconds, parts }: BenchContext): Promise<Table> {
  const { url, redis, version } = await startBenchRedis(parts);
  const server = await startLeaseServer(parts, url);
  const pools = { bare: openPool(server.bare), api: openPool(server.api) };
  parts.add("clients", async () => {
    await Promise.all([pools.bare.destroy(), pools.api.destroy()]);
  });
  const kinds: Kind[] = [
    { name: "(a) bare route", turn: (timed) => post(pools.bare, "/bare", timed), loads: [] },
    { name: "(b) bare EVALSHA", turn: (timed) => post(pools.bare, "/evalsha", timed), loads: [] },
    { name: "(c) acquire, release", turn: (timed) => acquireAndRelease(pools.api, server, timed), loads: [] },
  ];
  const ms = (seconds * 1000) / (sizes.length * rounds * kinds.length);
  const fleet = new Fleet({ redis });
  const rows: string[][] = [];
  let registered = 0;
  for (const size of sizes) {
    await register(fleet, registered, size);
    // Code that is not compiled yet would make the first figures, which are ceilings, too low.
    if (registered === 0) for (const { turn } of kinds) await load({ clients, ms: warmUpMs, turn });
    registered = size;
    for (const kind of kinds) kind.loads = [];
    // In turns, since the machine's mood changes within seconds.
    for (let round = 0; round < rounds; round += 1)
      for (const { turn, loads } of kinds) loads.push(await load({ clients, ms, turn }));
    rows.push(...kinds.map((kind) => toRow(size, kind, kinds[1]?.loads ?? [])));
  }
  return {
    title: "lease: acquire and release over HTTP against bare Fastify",
    columns: ["", "proxies", "requests/s", "p50 ms", "p99 ms", "ratio to (b)", "of each round"],
    rows,
    redisVersion: version,
    conditions: `${rounds} rounds in turns, ${Math.round(ms)} ms each; ${clients} clients in one process, one server process`,
  };
}

/** Registers the proxies `from` to `to`, healthy and with room for one lease. */
async function register(fleet: Fleet, from: number, to: number): Promise<void> {
  for (let first = from; first < to; first += registerAtOnce) {
    const count = Math.min(registerAtOnce, to - first);
    const entries = Array.from({ length: count }, (_, at) => {
      const name = `p${first + at}`;
      return fleetEntry({ uid: `uid-${first + at}`, name, seed });
    });
    await Promise.all(entries.map((entry) => fleet.upsert(entry, 1)));
  }
}

function openPool(origin: string): Pool {
  return new Pool(origin, { connections: clients, pipelining: 1 });
}

const json = { "content-type": "application/json" };
const body = JSON.stringify({ target: "shop.example", ttlSeconds: 60 });
const granted = z.object({ id: z.string(), token: z.string() });

/** The same body as an acquire has. */
async function post(pool: Pool, route: string, timed: Timed): Promise<void> {
  await timed(() => send(pool, { method: "POST", path: route, headers: json, body }, 200));
}

async function acquireAndRelease(pool: Pool, { token }: LeaseServer, timed: Timed): Promise<void> {
  const authorization = `Bearer ${token}`;
  const headers = { ...json, authorization };
  const text = await timed(() => send(pool, { method: "POST", path: "/v1/leases", headers, body }, 201));
  const lease = granted.parse(JSON.parse(text));
  const path = `/v1/leases/${lease.id}`;
  await timed(() =>
    send(pool, { method: "DELETE", path, headers: { authorization, "lease-token": lease.token } }, 204),
  );
}

/** Any other status ends the bench: the speed of errors is another question. */
async function send(pool: Pool, request: Parameters<Pool["request"]>[0], expected: number): Promise<string> {
  const response = await pool.request(request);
  const text = await response.body.text();
  if (response.statusCode !== expected)
    throw new Error(`${request.method} ${request.path}: ${response.statusCode} instead of ${expected}: ${text}`);
  return text;
}

function toRow(size: number, { name, loads }: Kind, ceiling: readonly Load[]): string[] {
  const ratio = (some: readonly Load[], of: readonly Load[]): string => (rateOf(some) / rateOf(of)).toFixed(2);
  const times = percentilesOf(loads, [0.5, 0.99]).map((ms) => ms.toFixed(1));
  const each = loads.map((load, round) => ratio([load], ceiling.slice(round, round + 1)));
  return [name, whole(size), whole(rateOf(loads)), ...times, ratio(loads, ceiling), each.join(" ")];
}
