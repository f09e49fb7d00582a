import { z } from "zod";
import { keys, member, parseMember } from "#shared/model/keys.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import { Script } from "#shared/redis/script.ts";
import { type Lease, leaseStates, parseLease } from "./lease.ts";
import { recordPrefix } from "./prefixes.ts";
import { redisCall } from "./redis-call.ts";

/** A page is closed once it has this many leases. */
const pageSize = 100;
/** One answer looks at no more than this many chunks of the index, however few leases match. */
const chunksPerPage = 20;

export interface LeaseFilter {
  owner?: string | undefined;
  target?: string | undefined;
  /** `<namespace>/<name>`: leases of the Proxy's current incarnation. */
  proxy?: string | undefined;
  /** Only leases that this API token took. */
  tokenName?: string | undefined;
  /** Namespaces that the API token may see; undefined: all. */
  namespaces?: readonly string[] | undefined;
}

export interface LeasePage {
  leases: Lease[];
  /** Where to go on; undefined: that was all. */
  nextCursor: string | undefined;
}

const script = new Script(new URL("./read.lua", import.meta.url));
const answer = z.array(z.union([z.tuple([z.enum(leaseStates), z.array(z.string())]), z.tuple([])]));

/** Reads some leases with their state by Redis's clock. The answer has the order of the ids; undefined: no such lease. */
export async function readLeases(redis: RedisClient, ids: readonly string[]): Promise<(Lease | undefined)[]> {
  if (ids.length === 0) return [];
  const reply = await redisCall(() => script.run(redis, ids.map(keys.lease), [recordPrefix]));
  return answer.parse(reply).map((found) => (found.length === 0 ? undefined : parseLease(found[1], found[0])));
}

/**
 * One page of the leases that match, in no particular order. A lease that lives while all pages are read is on one of
 * them, on two at worst. A page may be empty although more follow: filters are applied to what the index shows.
 */
export async function listLeases(
  redis: RedisClient,
  filter: LeaseFilter,
  cursor: string | undefined,
): Promise<LeasePage> {
  const index = await indexFor(redis, filter);
  if (index === undefined) return { leases: [], nextCursor: undefined };
  const leases: Lease[] = [];
  let at = cursor ?? "0";
  for (let chunk = 0; chunk < chunksPerPage && leases.length < pageSize; chunk += 1) {
    const from = at;
    const [next, flat] = await redisCall(() => redis.zscan(index, from, "COUNT", pageSize));
    const ids = flat.filter((_, position) => position % 2 === 0).map((entry) => entry.split("|", 1)[0] ?? "");
    for (const lease of await readLeases(redis, ids)) {
      if (lease !== undefined && matches(lease, filter)) leases.push(lease);
    }
    at = next;
    if (at === "0") return { leases, nextCursor: undefined };
  }
  return { leases, nextCursor: at };
}

/** The smallest index that has all leases that can match; undefined: there is no such proxy. */
async function indexFor(redis: RedisClient, filter: LeaseFilter): Promise<string | undefined> {
  const { proxy } = filter;
  if (proxy !== undefined) {
    const current = await redisCall(() => redis.hget(keys.names, proxy));
    if (current === null) return undefined;
    const { uid, incarnation } = parseMember(current);
    return keys.leasesOfMember(member(uid, incarnation));
  }
  return filter.tokenName === undefined ? keys.leaseExpiry : keys.leasesOfToken(filter.tokenName);
}

function matches(lease: Lease, filter: LeaseFilter): boolean {
  const { namespaces } = filter;
  return (
    (filter.owner === undefined || lease.owner === filter.owner) &&
    (filter.target === undefined || lease.target === filter.target) &&
    (filter.tokenName === undefined || lease.tokenName === filter.tokenName) &&
    (namespaces === undefined || namespaces.includes(lease.proxy.namespace))
  );
}
