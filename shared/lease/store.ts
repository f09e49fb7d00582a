import { createHash } from "node:crypto";
import { z } from "zod";
import { keys } from "#shared/model/keys.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import { Script } from "#shared/redis/script.ts";
import { searchAndGrant } from "./acquire.ts";
import { Buckets } from "./buckets.ts";
import type { GrantedLease, Lease } from "./lease.ts";
import { type LeaseFilter, type LeasePage, listLeases, readLeases } from "./list.ts";
import { prefixes } from "./prefixes.ts";
import { redisCall } from "./redis-call.ts";
import type { Selector } from "./selector.ts";

/** No lease lives longer, however often it is renewed. */
const lifetimeMs = 24 * 3_600_000;

export interface LeaseStoreDeps {
  redis: RedisClient;
  /** A random, unguessable string of at least 128 bits, made of characters that need no escaping in a url. */
  randomId: () => string;
  /** In [0, 1). */
  random: () => number;
  /** A clock that never goes back, for the age of what is kept in memory. Leases go by Redis's clock alone. */
  monotonicMs: () => number;
}

export interface AcquireRequest {
  selector: Selector;
  ttlMs: number;
  /** Name of the API token that asks. */
  tokenName: string;
  owner?: string | undefined;
  /** Lower-case host name. */
  target?: string | undefined;
  /** Namespaces that the API token may use; undefined: all. */
  namespaces?: readonly string[] | undefined;
  /** Most leases that the API token may have; undefined: no limit. */
  quota?: number | undefined;
}

export type AcquireResult =
  | { outcome: "granted"; lease: GrantedLease }
  | { outcome: "nothing-free" }
  | { outcome: "quota" };

export type ReleaseResult = "released" | "gone" | "not-owner" | "wrong-token";

export interface ReleaseProof {
  /** The lease must have been taken by this API token; undefined: by any. */
  tokenName: string | undefined;
  /** The lease's own token; undefined: not compared. */
  leaseToken: string | undefined;
}

const settle = new URL("./settle.lua", import.meta.url);
const releaseScript = new Script(settle, new URL("./release.lua", import.meta.url));
const reapScript = new Script(settle, new URL("./reap.lua", import.meta.url));

/** Leases in Redis. Every method throws Failure `RedisUnavailable` while Redis is away. */
export class LeaseStore {
  readonly #deps: LeaseStoreDeps;
  readonly #buckets: Buckets;

  constructor(deps: LeaseStoreDeps) {
    this.#deps = deps;
    this.#buckets = new Buckets(deps);
  }

  /** Leases the best instance that matches. Also throws Failure `SearchTooLong` when the signal ends the search. */
  async acquire(request: AcquireRequest, signal: AbortSignal): Promise<AcquireResult> {
    const token = this.#deps.randomId();
    const ask = {
      id: this.#deps.randomId(),
      token,
      tokenHash: sha256(token),
      tokenName: request.tokenName,
      owner: request.owner ?? "",
      target: request.target ?? "",
      ttlMs: request.ttlMs,
      lifetimeMs,
      quota: request.quota ?? 0,
      labels: request.selector.labels ?? {},
    };
    const scope = { selector: request.selector, namespaces: request.namespaces, signal };
    try {
      const deps = { redis: this.#deps.redis, buckets: this.#buckets, random: this.#deps.random };
      return (await searchAndGrant(deps, ask, scope)) ?? { outcome: "nothing-free" };
    } catch (error) {
      this.#takeBack(ask.id);
      throw error;
    }
  }

  /** Undefined: never existed, was released, or ended more than the report grace ago. */
  async read(id: string): Promise<Lease | undefined> {
    const [lease] = await readLeases(this.#deps.redis, [id]);
    return lease;
  }

  /** One page; see `listLeases`. */
  async list(filter: LeaseFilter, cursor: string | undefined): Promise<LeasePage> {
    return listLeases(this.#deps.redis, filter, cursor);
  }

  /** Ends a lease and frees its capacity at once. Safe to repeat. */
  async release(id: string, proof: ReleaseProof): Promise<ReleaseResult> {
    const tokenHash = proof.leaseToken === undefined ? "" : sha256(proof.leaseToken);
    const args = [...prefixes, keys.leasesOfToken(""), id, proof.tokenName ?? "", tokenHash];
    const reply = await redisCall(() => releaseScript.run(this.#deps.redis, [keys.leaseExpiry, keys.lease(id)], args));
    return z.enum(["released", "gone", "not-owner", "wrong-token"]).parse(reply);
  }

  /** Frees what at most `limit` expired leases held. Returns how many there were. */
  async reap(limit: number): Promise<number> {
    const reply = await redisCall(() => reapScript.run(this.#deps.redis, [keys.leaseExpiry], [...prefixes, limit]));
    return z.number().parse(reply);
  }

  /**
   * A grant whose answer was lost or could not be read must not hold its proxy; it may even still run, when a paused
   * Redis wakes up. The release waits behind it on the same connection. If it fails, the lease ends at its deadline.
   */
  #takeBack(id: string): void {
    this.release(id, { tokenName: undefined, leaseToken: undefined }).catch(() => "ends at its deadline");
  }
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
