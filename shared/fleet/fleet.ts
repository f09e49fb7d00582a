import { z } from "zod";
import { keys, type Member } from "#shared/model/keys.ts";
import type { RegistryRecord } from "#shared/model/registry-record.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import { Script } from "#shared/redis/script.ts";
import {
  amendedFields,
  type FleetAmendment,
  type FleetEntry,
  memberOf,
  seedArguments,
  toFields,
} from "./fleet-entry.ts";
import {
  censusAnswer,
  type InstanceState,
  listAnswer,
  memberText,
  parseFlatRecord,
  parseRecord,
  stateAnswer,
  stateFields,
  upsertAnswer,
} from "./script-answers.ts";

const upsertScript = new Script(new URL("./upsert.lua", import.meta.url));
const removeScript = new Script(new URL("./remove.lua", import.meta.url));
const listScript = new Script(new URL("./list.lua", import.meta.url));
const finishEpochScript = new Script(new URL("./finish-epoch.lua", import.meta.url));
const censusScript = new Script(new URL("./census.lua", import.meta.url));

/** A late write of a cut-off run comes within its job's lock; ten minutes are ample. */
const tombstoneMs = 600_000;
/** One script looks at about this many records, so that it never holds Redis for long. */
const pageSize = 200;

export interface FleetDeps {
  redis: RedisClient;
  /** From 0 to below 1; spreads the first probes. */
  random?: () => number;
}

/** How many instances of one provider are in which state, and their leases. */
export interface ProviderCount {
  healthy: number;
  unhealthy: number;
  /** Without a verdict yet. */
  pending: number;
  /** Of all of the above. */
  draining: number;
  leases: number;
}

export interface Look extends Pick<InstanceState, "verdict" | "trouble"> {
  registered: boolean;
}

/** What came of a write; see `upsert`. */
interface Written {
  written: boolean;
  record: InstanceState;
}

/**
 * The registry of what can be leased and probed. Each operation is one atomic script and one round trip, unless it says
 * otherwise; time is Redis's own. Errors of the connection reach the caller.
 */
export class Fleet {
  readonly #redis: RedisClient;
  readonly #random: () => number;

  constructor({ redis, random = Math.random }: FleetDeps) {
    this.#redis = redis;
    this.#random = random;
  }

  /**
   * Writes what reconcile knows of one instance; fields of probes and leases stay. With a fence older than the one that
   * wrote last nothing happens (`written: false`). `record` is what probes and leases say, read in the same call: with
   * `draining` set, no lease can have been added since.
   * An address that changed loses its verdict.
   */
  async upsert(entry: FleetEntry, fence: number): Promise<Written> {
    return await this.#upsert(entry, fence, "whole", toFields(entry, fence));
  }

  /**
   * `upsert` for an instance of which nobody can tell what it was made with: port, credentials and region stay as they
   * are registered. Where it is not registered nothing happens.
   */
  async amend(entry: FleetAmendment, fence: number): Promise<Written> {
    return await this.#upsert(entry, fence, "amend", amendedFields(entry, fence));
  }

  async #upsert(
    entry: FleetAmendment,
    fence: number,
    extent: "whole" | "amend",
    fields: (string | number)[],
  ): Promise<Written> {
    const id = memberOf(entry);
    const { probe } = entry;
    const named = keys.membersOfName(`${entry.namespace}/${entry.name}`);
    const ofInstance = [keys.record(id), keys.probe(id)];
    const indexes = [keys.members, keys.names, named, keys.buckets];
    const schedule = [keys.due(entry.provider), keys.dueProviders];
    const identity = [id, entry.uid, entry.incarnation, this.#random(), fence];
    const times = [probe.intervalSeconds * 1000, probe.timeoutSeconds * 1000];
    const answer = await upsertScript.run(
      this.#redis,
      [...ofInstance, ...indexes, ...schedule],
      [...identity, ...times, ...seedArguments(entry.seed), extent, ...fields],
    );
    const [written, record] = upsertAnswer.parse(answer);
    return { written: written === 1, record };
  }

  /**
   * Takes an instance out of the registry; its leases run on to their end. False when a newer fence wrote it.
   * For ten minutes a tombstone keeps writes with an older fence from bringing it back.
   */
  async remove(id: Member, fence: number): Promise<boolean> {
    return (await this.#remove(fence, "", "", [id])) === 1;
  }

  /** `remove` for all instances of `<namespace>/<name>`: for a Proxy that vanished without our finalizer. */
  async removeByName(key: string, fence: number): Promise<number> {
    return await this.#remove(fence, key, "", []);
  }

  /**
   * `remove` for every instance of `<namespace>/<name>` but `stays` (undefined: none stays): what an earlier object of
   * that name left, incarnations that are not the current one. Those of `gone` get a tombstone even if not registered.
   */
  async keepOnly(key: string, stays: Member | undefined, gone: readonly Member[], fence: number): Promise<number> {
    return await this.#remove(fence, key, stays ?? "", gone);
  }

  async #remove(fence: number, name: string, stays: string, gone: readonly Member[]): Promise<number> {
    const args = [fence, tombstoneMs, name, stays, ...gone];
    return z.number().parse(await removeScript.run(this.#redis, [keys.members, keys.names, keys.buckets], args));
  }

  /** Undefined when it is not registered (any more). */
  async read(id: Member): Promise<RegistryRecord | undefined> {
    return parseRecord(await this.#redis.hgetall(keys.record(id)));
  }

  /** The newest incarnation of `<namespace>/<name>`. Two round trips; undefined when it went between them. */
  async readByName(key: string): Promise<RegistryRecord | undefined> {
    const id = await this.#redis.hget(keys.names, key);
    return id === null ? undefined : await this.read(memberText.parse(id));
  }

  /** Whether one instance is registered, and what the probes say of it: a verdict, or what they fail of until then. */
  async look(id: Member): Promise<Look> {
    const [uid, ...state] = await this.#redis.hmget(keys.record(id), "uid", ...stateFields);
    const { verdict, trouble } = stateAnswer.parse(state);
    return { registered: uid !== null, verdict, trouble };
  }

  /**
   * A page of records. Begin with cursor "0"; the last page has none. `count` is a hint: a page may be empty or larger.
   * What is there all the while comes at least once, and may come twice.
   */
  async list(options: {
    namespaces?: readonly string[];
    cursor?: string;
    count?: number;
  }): Promise<{ records: RegistryRecord[]; cursor: string | undefined }> {
    const { namespaces = [], cursor = "0", count = pageSize } = options;
    const answer = await listScript.run(this.#redis, [keys.members], [cursor, count, ...namespaces]);
    const [next, rows] = listAnswer.parse(answer);
    const records = rows.flatMap(([, fields]) => parseFlatRecord(fields) ?? []);
    return { records, cursor: next === "0" ? undefined : next };
  }

  /** Every registered `<namespace>/<name>`. One round trip per thousand names. */
  async names(): Promise<Set<string>> {
    const found = new Set<string>();
    let cursor = "0";
    do {
      const [next, flat] = await this.#redis.hscan(keys.names, cursor, "COUNT", 1000);
      for (const [at, name] of flat.entries()) if (at % 2 === 0) found.add(name);
      cursor = next;
    } while (cursor !== "0");
    return found;
  }

  /** Counts by provider, for gauges. One round trip per 200 instances. */
  async counts(): Promise<Map<string, ProviderCount>> {
    const counts = new Map<string, ProviderCount>();
    const seen = new Set<Member>();
    let cursor = "0";
    do {
      const answer = await censusScript.run(this.#redis, [keys.members], [cursor, pageSize]);
      const [next, rows] = censusAnswer.parse(answer);
      for (const [id, [provider, healthy, draining, leases]] of rows) {
        if (provider === null || seen.has(id)) continue;
        seen.add(id);
        const count = counts.get(provider) ?? { healthy: 0, unhealthy: 0, pending: 0, draining: 0, leases: 0 };
        count[healthy === null ? "pending" : healthy === "1" ? "healthy" : "unhealthy"] += 1;
        if (draining === "1") count.draining += 1;
        count.leases += Number(leases ?? 0);
        counts.set(provider, count);
      }
      cursor = next;
    } while (cursor !== "0");
    return counts;
  }

  /** Id of this Redis data set; null: it was emptied, or is new. */
  async epoch(): Promise<string | null> {
    return await this.#redis.get(keys.epoch);
  }

  /** Someone begins to fill an empty data set. It takes the place of a fill that was begun and never finished. */
  async beginEpoch(id: string): Promise<void> {
    await this.#redis.set(keys.epochFilling, id);
  }

  /**
   * Names the data set that `beginEpoch(id)` began to fill. False, and nothing written, when Redis was emptied since, or
   * somebody else fills it: whatever was written may be lost.
   */
  async finishEpoch(id: string): Promise<boolean> {
    return (await finishEpochScript.run(this.#redis, [keys.epochFilling, keys.epoch], [id])) === 1;
  }
}
