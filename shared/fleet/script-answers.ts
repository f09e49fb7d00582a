import { z } from "zod";
import type { Member } from "#shared/model/keys.ts";
import { type RegistryRecord, registryRecord } from "#shared/model/registry-record.ts";
import type { Verdict } from "./fleet-entry.ts";

/** The shapes that our scripts answer with. A nil of Lua arrives as null. */

const text = z.string();
const maybe = text.nullable();
export const memberText = text.refine((value): value is Member => /^.+:\d+$/.test(value));

/** What probes and leases know of one instance. */
export interface InstanceState {
  /** Undefined until the first one. */
  verdict: Verdict | undefined;
  /** What the last probe failed of, while there is no verdict yet. */
  trouble: string | undefined;
  leases: number;
}

/** Fields of the record that make an InstanceState, in the order of `stateAnswer`. */
export const stateFields = [
  "healthy",
  "latencyMs",
  "observedIP",
  "verdictReason",
  "verdictMessage",
  "verdictAt",
  "leases",
] as const;

export const stateAnswer = z
  .tuple([maybe, maybe, maybe, maybe, maybe, maybe, maybe])
  .transform(([healthy, latencyMs, observedIP, reason, message, at, leases]): InstanceState => {
    const verdict: Verdict = {
      healthy: healthy === "1",
      latencyMs: latencyMs === null ? undefined : Number(latencyMs),
      observedIP: observedIP ?? undefined,
      reason: reason ?? "",
      message: message ?? "",
      at: new Date(Number(at ?? 0)),
    };
    const isPending = healthy === null;
    return {
      verdict: isPending ? undefined : verdict,
      trouble: isPending ? (message ?? undefined) : undefined,
      leases: Number(leases ?? 0),
    };
  });

export const upsertAnswer = z.tuple([z.number(), stateAnswer]);

export const recordProbeAnswer = z.tuple([z.number(), z.number(), maybe]);

const recordRow = z.tuple([memberText, z.array(text)]);
export const takeAnswer = z.array(recordRow);
export const listAnswer = z.tuple([text, takeAnswer]);

const censusRow = z.tuple([memberText, z.tuple([maybe, maybe, maybe, maybe])]);
export const censusAnswer = z.tuple([text, z.array(censusRow)]);

/** `[field, value, field, value]`, as HGETALL answers in a script, to a record. See `parseRecord`. */
export function parseFlatRecord(flat: readonly string[]): RegistryRecord | undefined {
  const fields: Record<string, string> = {};
  for (let at = 0; at + 1 < flat.length; at += 2) fields[flat[at] ?? ""] = flat[at + 1] ?? "";
  return parseRecord(fields);
}

/**
 * Undefined for a tombstone and for nothing at all. Throws on what is no record of ours; the message names fields but
 * repeats no value, since some are secret.
 */
export function parseRecord(fields: Record<string, string>): RegistryRecord | undefined {
  if (fields.uid === undefined) return undefined;
  const broken = (what: string): Error =>
    new Error(`the registry's record of ${fields.uid}:${fields.incarnation} does not parse: ${what}`);
  try {
    const parsed = registryRecord.safeParse(fields);
    if (parsed.success) return parsed.data;
    throw broken(parsed.error.issues.map((issue) => issue.path.join(".")).join(", "));
  } catch (error) {
    // The engine's own message on bad JSON quotes the text.
    throw error instanceof SyntaxError ? broken("a field is not JSON") : error;
  }
}
