import { keys, type Member, member, parseMember } from "#shared/model/keys.ts";
import { type RegistryRecord, registryRecord } from "#shared/model/registry-record.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import { type Census, sortKey } from "./census.ts";
import { type ProxyState, proxyState } from "./counts.ts";
import { redisCall, redisPipeline } from "./redis-call.ts";
import { matchesPlace } from "./selector.ts";

const pageSize = 100;

export interface ProxyFilter {
  namespace?: string | undefined;
  provider?: string | undefined;
  state?: ProxyState | undefined;
  /** Namespaces that the caller may see; undefined: all. */
  namespaces?: readonly string[] | undefined;
}

/** One registered instance and what it can do for a lease. Its `credentials` are for nobody who only looks. */
export interface ListedProxy {
  record: Omit<RegistryRecord, "credentials">;
  state: ProxyState;
}

export interface ProxyPage {
  proxies: ListedProxy[];
  /** Where to go on; undefined: that was all. */
  nextCursor: string | undefined;
}

/** Reads what can be leased, for people and monitoring. Throws Failure `RedisUnavailable`. */
export class Proxies {
  readonly #redis: RedisClient;
  readonly #census: Census;

  constructor(deps: { redis: RedisClient; census: Census }) {
    this.#redis = deps.redis;
    this.#census = deps.census;
  }

  /**
   * One page, by namespace and name; which instances there are is at most a second old. A Proxy that is being replaced
   * shows once per incarnation.
   */
  async list(filter: ProxyFilter, cursor: string | undefined): Promise<ProxyPage> {
    const after = cursor === undefined ? "" : Buffer.from(cursor, "base64url").toString();
    const place = { namespace: filter.namespace, provider: filter.provider };
    const rest = (await this.#census.entries()).filter(
      (entry) =>
        sortKey(entry) > after &&
        matchesPlace(entry, place, filter.namespaces) &&
        (filter.state === undefined || entry.state === filter.state),
    );
    const page = rest.slice(0, pageSize);
    const last = page.at(-1);
    const proxies = await this.#records(page.map((entry) => asMember(entry.member)));
    const more = last !== undefined && rest.length > page.length;
    return { proxies, nextCursor: more ? Buffer.from(sortKey(last)).toString("base64url") : undefined };
  }

  /** The current incarnation of `<namespace>/<name>`; undefined when there is none. */
  async read(namespace: string, name: string): Promise<ListedProxy | undefined> {
    const current = await redisCall(() => this.#redis.hget(keys.names, `${namespace}/${name}`));
    if (current === null) return undefined;
    const [proxy] = await this.#records([asMember(current)]);
    return proxy;
  }

  /** Leaves out what was removed in between. */
  async #records(members: readonly Member[]): Promise<ListedProxy[]> {
    const reads = this.#redis.pipeline();
    for (const id of members) reads.hgetall(keys.record(id));
    const values = members.length === 0 ? [] : await redisPipeline(reads);
    return values.flatMap((value) => {
      // An empty hash, or the tombstone of a removed instance.
      if (typeof value !== "object" || value === null || !("bucket" in value)) return [];
      const { credentials: _secret, ...record } = registryRecord.parse(value);
      return [{ record, state: proxyState({ ...record, healthy: record.healthy === true }) }];
    });
  }
}

function asMember(text: string): Member {
  const { uid, incarnation } = parseMember(text);
  return member(uid, incarnation);
}
