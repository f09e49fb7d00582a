import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Fleet } from "#shared/fleet/fleet.ts";
import { keys, member } from "#shared/model/keys.ts";
import { fleetEntry } from "#test/fakes/fleet-entry.ts";
import { startRedis, type TestRedis } from "#test/redis.ts";
import { LeaseStore } from "./store.ts";

let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

/** The rules in plain words: what Redis and Lua must agree with after every step. */
interface ModelProxy {
  uid: string;
  incarnation: number;
  zone: string;
  tier: string;
  max: number;
  healthy: boolean;
  draining: boolean;
  registered: boolean;
  /** Ids of leases, by incarnation: a lease never moves. */
  leases: Map<number, Set<string>>;
}

const running = (proxy: ModelProxy): number => proxy.leases.get(proxy.incarnation)?.size ?? 0;
const isFree = (proxy: ModelProxy): boolean =>
  proxy.registered && proxy.healthy && !proxy.draining && running(proxy) < proxy.max;

/** A small generator whose runs can be repeated by their seed. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

class World {
  readonly steps: string[] = [];
  readonly #random: () => number;
  readonly #fleet = new Fleet({ redis });
  readonly #store: LeaseStore;
  readonly #proxies: ModelProxy[];
  readonly #held: { id: string; proxy: ModelProxy; incarnation: number }[] = [];
  #fence = 0;

  constructor(seed: number) {
    this.#random = generator(seed);
    const randomId = (): string => randomBytes(16).toString("hex");
    this.#store = new LeaseStore({ redis, randomId, random: this.#random, monotonicMs: () => performance.now() });
    this.#proxies = Array.from({ length: 12 }, (_, i) => ({
      uid: `p${i}`,
      incarnation: 1,
      zone: `z${i % 3}`,
      tier: i % 4 === 0 ? "gold" : "silver",
      max: i % 4,
      healthy: i % 5 !== 0,
      draining: false,
      registered: false,
      leases: new Map<number, Set<string>>(),
    }));
  }

  async step(): Promise<void> {
    const roll = this.#random();
    const proxy = this.#pick(this.#proxies);
    if (roll < 0.45) await this.#acquire();
    else if (roll < 0.6) await this.#end("release");
    else if (roll < 0.7) await this.#end("expire");
    else if (roll < 0.78) await this.#write({ ...proxy, max: Math.floor(this.#random() * 4) }, "resize");
    else if (roll < 0.88) await this.#write({ ...proxy, healthy: !proxy.healthy }, "turn health");
    else if (roll < 0.92) await this.#write({ ...proxy, draining: !proxy.draining }, "turn draining");
    else if (roll < 0.96)
      await this.#write({ ...proxy, incarnation: proxy.incarnation + 1, draining: false }, "replace");
    else await this.#remove(proxy);
  }

  #pick<T>(from: readonly T[]): T {
    const found = from[Math.floor(this.#random() * from.length)];
    if (found === undefined) throw new Error("nothing to pick from");
    return found;
  }

  async #acquire(): Promise<void> {
    const zone = this.#random() < 0.4 ? `z${Math.floor(this.#random() * 3)}` : undefined;
    const tier = this.#random() < 0.3 ? "gold" : undefined;
    this.steps.push(`acquire zone=${zone} tier=${tier}`);
    const selector = { zone, labels: tier === undefined ? undefined : { tier } };
    const request = { selector, ttlMs: 600_000, tokenName: "t" };
    const result = await this.#store.acquire(request, AbortSignal.timeout(10_000));
    const candidates = this.#proxies.filter(
      (proxy) => isFree(proxy) && (zone ?? proxy.zone) === proxy.zone && (tier ?? proxy.tier) === proxy.tier,
    );
    if (result.outcome !== "granted") {
      expect(candidates.map((proxy) => proxy.uid)).toEqual([]);
      return;
    }
    const { id, member: granted } = result.lease;
    const chosen = candidates.find((proxy) => member(proxy.uid, proxy.incarnation) === granted);
    if (chosen === undefined) throw new Error(`${granted} was leased but is not free and matching`);
    // Without labels the best of all is among those that were looked at.
    if (tier === undefined) expect(running(chosen)).toBe(Math.min(...candidates.map(running)));
    const ids = chosen.leases.get(chosen.incarnation) ?? new Set();
    chosen.leases.set(chosen.incarnation, ids.add(id));
    this.#held.push({ id, proxy: chosen, incarnation: chosen.incarnation });
  }

  async #end(how: "release" | "expire"): Promise<void> {
    if (this.#held.length === 0) return;
    const lease = this.#pick(this.#held);
    this.#held.splice(this.#held.indexOf(lease), 1);
    const of = member(lease.proxy.uid, lease.incarnation);
    this.steps.push(`${how} a lease of ${of}`);
    lease.proxy.leases.get(lease.incarnation)?.delete(lease.id);
    if (how === "release") {
      const proof = { tokenName: undefined, leaseToken: undefined };
      expect(await this.#store.release(lease.id, proof)).toBe("released");
    } else {
      // As if its time had passed: nothing else changes at the moment of expiry.
      await redis.zadd(keys.leaseExpiry, 1, `${lease.id}|${of}`);
      await redis.zadd(keys.leasesOfMember(of), 1, lease.id);
    }
  }

  async #write(next: ModelProxy, what: string): Promise<void> {
    const proxy = this.#proxies.find(({ uid }) => uid === next.uid);
    if (proxy === undefined) throw new Error(`no ${next.uid}`);
    this.steps.push(`${what} ${next.uid}`);
    const old = member(proxy.uid, proxy.incarnation);
    Object.assign(proxy, next, { registered: true });
    const { uid, incarnation, zone, tier, max, draining } = proxy;
    const id = member(uid, incarnation);
    if (id !== old) await this.#fleet.remove(old, ++this.#fence);
    const write = async () =>
      this.#fleet.upsert(
        fleetEntry({ uid, name: uid, incarnation, zone, labels: { tier }, max, draining }),
        ++this.#fence,
      );
    await write();
    // What a probe's verdict does; the write after it brings the free set in line.
    await redis.hset(keys.record(id), "healthy", proxy.healthy ? "1" : "0");
    await write();
  }

  async #remove(proxy: ModelProxy): Promise<void> {
    this.steps.push(`remove ${proxy.uid}`);
    proxy.registered = false;
    await this.#fleet.remove(member(proxy.uid, proxy.incarnation), ++this.#fence);
  }

  /** After reaping, Redis holds exactly what the model holds. */
  async compare(): Promise<void> {
    while ((await this.#store.reap(100)) > 0);
    expect((await redis.zrange(keys.leaseExpiry, "0", "-1")).length).toBe(this.#held.length);
    for (const proxy of this.#proxies) {
      const id = member(proxy.uid, proxy.incarnation);
      const free = await redis.zscore(keys.free(`crawl|lab||${proxy.zone}`), id);
      expect(free !== null, `${id} is in the free set`).toBe(isFree(proxy));
      if (proxy.registered) expect(Number(await redis.hget(keys.record(id), "leases"))).toBe(running(proxy));
    }
  }
}

test.each([1, 2, 3, 4])("random steps agree with the rules in plain words (seed %i)", async (seed) => {
  await redis.flushall();
  const world = new World(seed);
  try {
    for (let i = 0; i < 600; i += 1) {
      await world.step();
      if (i % 50 === 49) await world.compare();
    }
  } catch (error) {
    throw new Error(`seed ${seed} after these steps:\n${world.steps.slice(-30).join("\n")}`, { cause: error });
  }
});
