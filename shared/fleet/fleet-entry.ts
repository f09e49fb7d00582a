import { bucket, type Member, member } from "#shared/model/keys.ts";
import type { RegistryRecord } from "#shared/model/registry-record.ts";

/** What the probes last concluded of one instance. */
export interface Verdict {
  healthy: boolean;
  /** Time that the last successful probe took. */
  latencyMs?: number | undefined;
  /** What the probe's echo said the address is. */
  observedIP?: string | undefined;
  /** A reason code of the probe, or `Remembered` when it came from a seed. */
  reason: string;
  message: string;
  /** When the verdict last changed. */
  at: Date;
}

/** A verdict as something outside Redis remembers it: the status of the Proxy. */
export type SeedVerdict = Omit<Verdict, "reason">;

/** What reconcile writes of one instance. Region and zone are '' when unknown, egressIP too. */
export type FleetEntry = Pick<
  RegistryRecord,
  | "namespace"
  | "name"
  | "uid"
  | "incarnation"
  | "provider"
  | "region"
  | "zone"
  | "host"
  | "port"
  | "egressIP"
  | "labels"
  | "credentials"
  | "probe"
  | "max"
  | "draining"
> & {
  /**
   * Taken only when Redis has no verdict: after it was emptied. Must be about this very incarnation, or a replacement
   * would be leased before anybody probed it.
   */
  seed?: SeedVerdict | undefined;
};

export function memberOf(entry: Pick<FleetEntry, "uid" | "incarnation">): Member {
  return member(entry.uid, entry.incarnation);
}

/** What an instance was made with: it does not follow the spec, only a new incarnation has it otherwise. */
type MadeWith = "port" | "credentials" | "region";

/** An entry that leaves out what the instance was made with. */
export type FleetAmendment = Omit<FleetEntry, MadeWith>;

/** The entry as fields of the record's hash and their values, in turn. */
export function toFields(entry: FleetEntry, fence: number): (string | number)[] {
  const { region, port, credentials } = entry;
  const login = credentials === undefined ? [] : ["credentials", JSON.stringify(credentials)];
  return [...amendedFields(entry, fence), "region", region, "port", port, "bucket", bucket(entry), ...login];
}

/** `toFields` without what the instance was made with. */
export function amendedFields(entry: FleetAmendment, fence: number): (string | number)[] {
  const fields = {
    namespace: entry.namespace,
    name: entry.name,
    uid: entry.uid,
    incarnation: entry.incarnation,
    provider: entry.provider,
    zone: entry.zone,
    host: entry.host,
    egressIP: entry.egressIP,
    labels: JSON.stringify(entry.labels),
    probe: JSON.stringify(entry.probe),
    max: entry.max,
    draining: entry.draining ? "1" : "0",
    fence,
  };
  return Object.entries(fields).flat();
}

/** A seed as five arguments of upsert.lua; '' stands for what is not known. */
export function seedArguments(seed: SeedVerdict | undefined): (string | number)[] {
  if (seed === undefined) return ["", "", "", "", ""];
  const { healthy, latencyMs = "", observedIP = "", message, at } = seed;
  return [healthy ? "1" : "0", latencyMs, observedIP, message, at.getTime()];
}
