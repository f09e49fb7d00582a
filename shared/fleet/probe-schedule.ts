import { z } from "zod";
import { keys, type Member } from "#shared/model/keys.ts";
import type { RegistryRecord } from "#shared/model/registry-record.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import { Script } from "#shared/redis/script.ts";
import { parseFlatRecord, recordProbeAnswer, takeAnswer } from "./script-answers.ts";

const takeScript = new Script(new URL("./take-due.lua", import.meta.url));
const recordScript = new Script(new URL("./record-probe.lua", import.meta.url));
const soonScript = new Script(new URL("./probe-soon.lua", import.meta.url));

/** What a taken probe may take beyond its own timeout before others may take it, too. */
export const takeGraceMs = 5_000;
const soonEveryMs = 10_000;

/** One probe to make. */
export interface DueProbe {
  member: Member;
  record: RegistryRecord;
}

export interface ProbeResult {
  ok: boolean;
  latencyMs: number;
  /** What the echo said; undefined when it said nothing of the kind. */
  observedIP?: string | undefined;
  /** A stable code. */
  reason: string;
  /** A sentence that stays the same while the cause does: it ends up in the status. */
  message: string;
}

/** What became of a result. */
export interface Judgement {
  /** False: the instance was replaced, removed or moved meanwhile, and the result dropped. */
  recorded: boolean;
  /** The verdict or the observed IP is another one than before: the status must follow. */
  changed: boolean;
  /** Undefined: no verdict yet. */
  healthy: boolean | undefined;
}

export interface ProbeScheduleDeps {
  redis: RedisClient;
  /** From 0 to below 1; spreads probes, so that they do not march in step. */
  random?: () => number;
  /** Told of a record that cannot be read; its probe comes back by itself. */
  onUnreadable: (error: Error) => void;
}

/** When each instance is probed, and what the probes say. One due set per provider; each operation one round trip. */
export class ProbeSchedule {
  readonly #deps: ProbeScheduleDeps;

  constructor(deps: ProbeScheduleDeps) {
    this.#deps = deps;
  }

  /** Providers that have something to probe, now or later, in no order. */
  async dueProviders(): Promise<string[]> {
    return await this.#deps.redis.smembers(keys.dueProviders);
  }

  /**
   * At most `limit` probes of a provider that are due, the longest overdue first. Nobody else gets them until their
   * timeout and 5 s have passed; then they are due again, so nothing need be given back.
   */
  async takeDue(provider: string, limit: number): Promise<DueProbe[]> {
    const scriptKeys = [keys.due(provider), keys.dueProviders];
    const rows = takeAnswer.parse(await takeScript.run(this.#deps.redis, scriptKeys, [provider, limit, takeGraceMs]));
    return rows.flatMap(([member, fields]) => {
      try {
        const record = parseFlatRecord(fields);
        return record === undefined ? [] : [{ member, record }];
      } catch (error) {
        // One bad record must not keep the provider's others from being probed.
        this.#deps.onUnreadable(error instanceof Error ? error : new Error("unreadable record", { cause: error }));
        return [];
      }
    });
  }

  /**
   * Counts a result, judges (thresholds of the Proxy, see record-probe.lua), moves the instance in or out of what can
   * be leased, and plans the next probe: the interval, 10 % more or less.
   */
  async recordProbe({ member, record }: DueProbe, result: ProbeResult): Promise<Judgement> {
    const scriptKeys = [keys.record(member), keys.probe(member)];
    const { ok, latencyMs, reason, message, observedIP = "" } = result;
    const { random = Math.random } = this.#deps;
    const said = [member, ok ? "1" : "0", Math.round(latencyMs), reason, message, observedIP];
    const args = [...said, record.host, record.port, random()];
    const answer = await recordScript.run(this.#deps.redis, scriptKeys, args);
    const [recorded, changed, healthy] = recordProbeAnswer.parse(answer);
    return {
      recorded: recorded === 1,
      changed: changed === 1,
      healthy: healthy === null ? undefined : healthy === "1",
    };
  }

  /** Makes a probe due at once, at most every 10 s. False when it was too soon, or the instance is not registered. */
  async probeSoon(member: Member): Promise<boolean> {
    const scriptKeys = [keys.record(member), keys.probe(member)];
    return z.number().parse(await soonScript.run(this.#deps.redis, scriptKeys, [member, soonEveryMs])) === 1;
  }
}
