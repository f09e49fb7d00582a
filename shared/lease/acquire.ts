import { z } from "zod";
import { Failure } from "#shared/errors/failure.ts";
import { keys } from "#shared/model/keys.ts";
import { jsonText } from "#shared/model/registry-record.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import type { Buckets } from "./buckets.ts";
import { type Ask, bucketLimit, candidateLimit, type GrantAnswer, tryGrant, type Where } from "./grant.ts";
import { recordPrefix } from "./prefixes.ts";
import { redisCall, redisPipeline } from "./redis-call.ts";
import { matchesLabels, type Selector } from "./selector.ts";

/** About how many members of a free set one round trip reads when the best ones did not match. */
const scanCount = 256;

export interface SearchDeps {
  redis: RedisClient;
  buckets: Buckets;
  random: () => number;
}

export interface SearchScope {
  selector: Selector;
  /** Namespaces that the API token may use; undefined: all. */
  namespaces: readonly string[] | undefined;
  /** Checked between two round trips. */
  signal: AbortSignal;
}

type Found = Extract<GrantAnswer, { outcome: "granted" | "quota" }>;

/**
 * Looks for an instance until one is leased or none can be had: nearly always one script call.
 * Undefined means nothing free, and is true: an instance that matched and was free all the while is found.
 * Throws Failure `RedisUnavailable`, or `SearchTooLong` when the signal ends it first.
 */
export async function searchAndGrant(deps: SearchDeps, ask: Ask, scope: SearchScope): Promise<Found | undefined> {
  const tried = new Set<string>();
  const further: string[] = [];
  for (const fresh of [false, true]) {
    const matching = await redisCall(() => deps.buckets.matching(scope.selector, scope.namespaces, { fresh }));
    const untried = matching.filter((name) => !tried.has(name));
    for (const group of groups(untried, deps.random)) {
      const answer = await attempt(deps, ask, { buckets: group }, scope.signal);
      if (answer.outcome !== "nothing") return answer;
      if (answer.lookFurther) further.push(...group);
    }
    for (const name of untried) tried.add(name);
  }
  for (const name of further) {
    const found = await searchWholeBucket(deps, ask, name, scope.signal);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Repeats one attempt for as long as expired leases are in the way. */
async function attempt(deps: SearchDeps, ask: Ask, where: Where, signal: AbortSignal): Promise<GrantAnswer> {
  for (;;) {
    throwWhenTooLong(signal);
    const answer = await tryGrant(deps.redis, ask, where);
    if (answer.outcome !== "nothing" || !answer.reapAgain) return answer;
  }
}

/**
 * Goes through all free instances of one bucket. ZSCAN, because it shows whatever stays in the set all the while, even
 * when its rank changes; a position by rank would miss an instance that moves to the front.
 */
async function searchWholeBucket(
  deps: SearchDeps,
  ask: Ask,
  name: string,
  signal: AbortSignal,
): Promise<Found | undefined> {
  let cursor = "0";
  do {
    throwWhenTooLong(signal);
    const from = cursor;
    const [next, flat] = await redisCall(() => deps.redis.zscan(keys.free(name), from, "COUNT", scanCount));
    cursor = next;
    const matching = await withLabels(deps.redis, byRank(flat), ask.labels);
    for (let at = 0; at < matching.length; at += candidateLimit) {
      const candidates = matching.slice(at, at + candidateLimit);
      const answer = await attempt(deps, ask, { candidates }, signal);
      if (answer.outcome !== "nothing") return answer;
    }
  } while (cursor !== "0");
  return undefined;
}

/** `flat`: member and rank in turn. */
function byRank(flat: readonly string[]): string[] {
  const entries: { name: string; rank: number }[] = [];
  for (let at = 0; at < flat.length; at += 2) entries.push({ name: flat[at] ?? "", rank: Number(flat[at + 1]) });
  return entries.sort((a, b) => a.rank - b.rank).map((entry) => entry.name);
}

const labelsOf = jsonText(z.record(z.string(), z.string()));

async function withLabels(redis: RedisClient, members: string[], wanted: Record<string, string>): Promise<string[]> {
  if (Object.keys(wanted).length === 0) return members;
  const reads = redis.pipeline();
  for (const name of members) reads.hget(`${recordPrefix}${name}`, "labels");
  const replies = await redisPipeline(reads);
  return members.filter((_, at) => {
    const json = replies[at];
    return typeof json === "string" && matchesLabels(labelsOf.parse(json), wanted);
  });
}

/** Begins with any group, so that several groups share the load; the rank decides within one. */
function groups(names: readonly string[], random: () => number): string[][] {
  const all: string[][] = [];
  for (let at = 0; at < names.length; at += bucketLimit) all.push(names.slice(at, at + bucketLimit));
  const first = Math.floor(random() * all.length);
  return [...all.slice(first), ...all.slice(0, first)];
}

function throwWhenTooLong(signal: AbortSignal): void {
  if (!signal.aborted) return;
  throw new Failure({
    class: "Transient",
    code: "SearchTooLong",
    message: "it could not be found out in time whether a proxy is free",
  });
}
