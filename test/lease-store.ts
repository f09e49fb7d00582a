import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { Fleet } from "#shared/fleet/fleet.ts";
import type { FleetEntry } from "#shared/fleet/fleet-entry.ts";
import type { GrantedLease } from "#shared/lease/lease.ts";
import { type AcquireRequest, type AcquireResult, LeaseStore } from "#shared/lease/store.ts";
import { keys, member, parseMember } from "#shared/model/keys.ts";
import { fleetEntry } from "#test/fakes/fleet-entry.ts";

/** A verdict that makes a proxy leasable at once. */
export const seed = { healthy: true, message: "It answered.", at: new Date(1000) };

/** Releases whatever is asked for. */
export const anybody = { tokenName: undefined, leaseToken: undefined };

/** A store on a connection of its own; `random` always 0, so that runs are alike. */
export function leaseStoreOn(redis: Redis): LeaseStore {
  const randomId = (): string => randomBytes(16).toString("hex");
  return new LeaseStore({ redis, randomId, random: () => 0, monotonicMs: () => performance.now() });
}

/** A fleet and a lease store on one Redis, and the usual moves of a test. */
export class LeaseBench {
  readonly redis: Redis;
  readonly fleet: Fleet;
  store: LeaseStore;

  constructor(url: string) {
    this.redis = new Redis(url);
    this.fleet = new Fleet({ redis: this.redis });
    this.store = leaseStoreOn(this.redis);
  }

  /** Empties Redis and forgets what the store remembered. */
  async reset(): Promise<void> {
    await this.redis.flushall();
    this.store = leaseStoreOn(this.redis);
  }

  close(): void {
    this.redis.disconnect();
  }

  /** A healthy proxy of one lease, named after its uid. */
  async register(uid: string, overrides: Partial<FleetEntry> = {}, fence = 1): Promise<void> {
    await this.fleet.upsert(fleetEntry({ uid, name: uid, seed, ...overrides }), fence);
  }

  async acquire(request: Partial<AcquireRequest> = {}, on: LeaseStore = this.store): Promise<AcquireResult> {
    return on.acquire({ selector: {}, ttlMs: 60_000, tokenName: "crawler", ...request }, AbortSignal.timeout(30_000));
  }

  async granted(request: Partial<AcquireRequest> = {}): Promise<GrantedLease> {
    const result = await this.acquire(request);
    if (result.outcome !== "granted") throw new Error(`expected a lease, got ${result.outcome}`);
    return result.lease;
  }

  /** As if the lease's time had passed: nothing else changes at the moment of expiry. */
  async expire(lease: { id: string; member: string; tokenName: string }): Promise<void> {
    const { uid, incarnation } = parseMember(lease.member);
    await this.redis.hset(keys.lease(lease.id), "expiresAt", 1);
    await this.redis.zadd(keys.leaseExpiry, 1, `${lease.id}|${lease.member}`);
    await this.redis.zadd(keys.leasesOfMember(member(uid, incarnation)), 1, lease.id);
    await this.redis.zadd(keys.leasesOfToken(lease.tokenName), 1, lease.id);
  }

  /** Redis's clock, in ms. */
  async now(): Promise<number> {
    const [seconds, micros] = await this.redis.time();
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  }
}
