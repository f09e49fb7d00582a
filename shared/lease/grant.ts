import { z } from "zod";
import { keys } from "#shared/model/keys.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import { Script } from "#shared/redis/script.ts";
import { type GrantedLease, parseCredentials, parseLease } from "./lease.ts";
import { prefixes } from "./prefixes.ts";
import { redisCall } from "./redis-call.ts";

/** Most instances that one script call looks at, so that its cost does not grow with the fleet. */
export const candidateLimit = 64;
/** Most buckets that one script call looks into. */
export const bucketLimit = 32;
/** Most expired leases that one script call frees. */
const reapLimit = 100;
/** How long a lease stays readable after its deadline: reports are taken that long. */
const graceMs = 600_000;

const script = new Script(new URL("./settle.lua", import.meta.url), new URL("./grant.lua", import.meta.url));

const flag = z.union([z.literal(0), z.literal(1)]).transform((value) => value === 1);
const answer = z.union([
  z.tuple([z.literal("granted"), z.array(z.string()), z.string()]),
  z.tuple([z.literal("quota")]),
  z.tuple([z.literal("nothing"), flag, flag]),
]);

/** One lease that somebody asks for: everything but where to look. */
export interface Ask {
  /** Random, unguessable and never used before. */
  id: string;
  token: string;
  /** sha256 of the token, hex. */
  tokenHash: string;
  tokenName: string;
  owner: string;
  target: string;
  ttlMs: number;
  lifetimeMs: number;
  /** Most leases that this API token may have; 0: no limit. */
  quota: number;
  labels: Record<string, string>;
}

/** Where to look: the best of some buckets, or members that somebody already chose, best first. */
export type Where = { buckets: readonly string[] } | { candidates: readonly string[] };

export type GrantAnswer =
  | { outcome: "granted"; lease: GrantedLease }
  | { outcome: "quota" }
  /** Only when both are false it is certain that nothing was free there. */
  | { outcome: "nothing"; reapAgain: boolean; lookFurther: boolean };

/** One atomic attempt in one round trip. Throws Failure `RedisUnavailable`; an ambiguous one may have granted. */
export async function tryGrant(redis: RedisClient, ask: Ask, where: Where): Promise<GrantAnswer> {
  const { token, ...rest } = ask;
  const scriptKeys = [keys.leaseExpiry, keys.lease(ask.id), keys.leasesOfToken(ask.tokenName)];
  const request = JSON.stringify({ ...rest, ...where, graceMs, reapLimit, candidateLimit });
  const reply = answer.parse(await redisCall(() => script.run(redis, scriptKeys, [...prefixes, request])));
  if (reply[0] === "quota") return { outcome: "quota" };
  if (reply[0] === "nothing") return { outcome: "nothing", reapAgain: reply[1], lookFurther: reply[2] };
  const lease = { ...parseLease(reply[1], "active"), token, credentials: parseCredentials(reply[2]) };
  return { outcome: "granted", lease };
}
