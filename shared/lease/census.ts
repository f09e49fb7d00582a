import { z } from "zod";
import { keys } from "#shared/model/keys.ts";
import { jsonText } from "#shared/model/registry-record.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import { type Counts, countByReason, type ProxyState, proxyState } from "./counts.ts";
import { recordPrefix } from "./prefixes.ts";
import { redisCall, redisPipeline } from "./redis-call.ts";
import { matchesLabels, matchesPlace, type Selector } from "./selector.ts";

/** Members per round trip: one chunk takes Redis about a millisecond, so grants are not held up. */
const chunk = 500;
/** How long one reading of the registry serves. Without it, a rush of refused acquires would read it once each. */
const freshMs = 1_000;
/** Most selectors whose counts are remembered per reading: what clients ask for must not fill the memory. */
const rememberedSelectors = 1_000;

/** What the counts and the lists need to know of one registered instance. */
export interface CensusEntry {
  member: string;
  namespace: string;
  name: string;
  provider: string;
  region: string;
  zone: string;
  labels: Record<string, string>;
  state: ProxyState;
}

const read = ["namespace", "name", "provider", "region", "zone", "labels", "healthy", "draining", "max", "leases"];
const text = z.string();
const row = z.tuple([
  text,
  text,
  text,
  text,
  text,
  jsonText(z.record(z.string(), z.string())),
  z.string().nullable(),
  z.string(),
  z.coerce.number(),
  z.coerce.number(),
]);

interface Reading {
  readonly entries: Promise<CensusEntry[]>;
  readonly counts: Map<string, Counts>;
  readonly startedAt: number;
}

/**
 * All registered instances as of at most a second ago: read in chunks, outside any script, and shared by everybody who
 * asks within that second. What a grant decides never comes from here.
 */
export class Census {
  readonly #redis: RedisClient;
  readonly #monotonicMs: () => number;
  #reading: Reading | undefined;

  constructor(deps: { redis: RedisClient; monotonicMs: () => number }) {
    this.#redis = deps.redis;
    this.#monotonicMs = deps.monotonicMs;
  }

  /** By namespace, name and member. Throws Failure `RedisUnavailable`. */
  async entries(): Promise<readonly CensusEntry[]> {
    return this.#current().entries;
  }

  /**
   * How many instances there are, how many match, and why those cannot be leased; they add up. `namespaces`: those that
   * the caller may see; undefined: all. `total` counts only what the caller may see.
   */
  async counts(selector: Selector, namespaces: readonly string[] | undefined): Promise<Counts> {
    const reading = this.#current();
    const key = JSON.stringify([selector, namespaces]);
    const known = reading.counts.get(key);
    if (known !== undefined) return known;
    const visible = (await reading.entries).filter((entry) => matchesPlace(entry, {}, namespaces));
    const matching = visible.filter(
      (entry) => matchesPlace(entry, selector, undefined) && matchesLabels(entry.labels, selector.labels),
    );
    const counts = countByReason(
      visible.length,
      matching.map((entry) => entry.state),
    );
    if (reading.counts.size < rememberedSelectors) reading.counts.set(key, counts);
    return counts;
  }

  #current(): Reading {
    const now = this.#monotonicMs();
    if (this.#reading !== undefined && now - this.#reading.startedAt <= freshMs) return this.#reading;
    const reading = { entries: this.#read(), counts: new Map<string, Counts>(), startedAt: now };
    this.#reading = reading;
    // A failed reading must not be served for a second: the next caller tries again.
    reading.entries.catch(() => {
      if (this.#reading === reading) this.#reading = undefined;
    });
    return reading;
  }

  async #read(): Promise<CensusEntry[]> {
    const entries = new Map<string, CensusEntry>();
    let cursor = "0";
    do {
      const from = cursor;
      const [next, flat] = await redisCall(() => this.#redis.hscan(keys.members, from, "COUNT", chunk));
      cursor = next;
      const members = flat.filter((_, at) => at % 2 === 0);
      const records = this.#redis.pipeline();
      for (const member of members) records.hmget(`${recordPrefix}${member}`, ...read);
      for (const [at, value] of (await redisPipeline(records)).entries()) {
        const entry = toEntry(members[at] ?? "", value);
        // A map, because a scan may show a member twice.
        if (entry !== undefined) entries.set(entry.member, entry);
      }
    } while (cursor !== "0");
    return [...entries.values()].sort((a, b) => compare(sortKey(a), sortKey(b)));
  }
}

/** The order of a list of proxies, and what its cursor holds. */
export function sortKey(entry: CensusEntry): string {
  return `${entry.namespace}/${entry.name}/${entry.member}`;
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Undefined: the record was removed since the scan. */
function toEntry(member: string, value: unknown): CensusEntry | undefined {
  if (Array.isArray(value) && value[0] === null) return undefined;
  const [namespace, name, provider, region, zone, labels, healthy, draining, max, leases] = row.parse(value);
  const state = proxyState({ healthy: healthy === "1", draining: draining === "1", leases, max });
  return { member, namespace, name, provider, region, zone, labels, state };
}
