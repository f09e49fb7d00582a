import { z } from "zod";
import { type Credentials, credentials, jsonText } from "#shared/model/registry-record.ts";

/**
 * - active: usable until `expiresAt`.
 * - draining: usable, but its proxy is about to go: take another one soon.
 * - revoked: its proxy was removed or replaced before the deadline.
 * - expired: the deadline has passed; still readable for the report grace.
 */
export const leaseStates = ["active", "draining", "revoked", "expired"] as const;
export type LeaseState = (typeof leaseStates)[number];

const number = z.coerce.number();
const optionalText = z.string().transform((value) => (value === "" ? undefined : value));

/** The hash of one lease, as the grant script writes it. Times are in ms of Redis's clock. */
const leaseHash = z.object({
  id: z.string(),
  tokenHash: z.string(),
  tokenName: z.string(),
  owner: optionalText,
  target: optionalText,
  acquiredAt: number,
  renewedAt: number,
  expiresAt: number,
  maxExpiresAt: number,
  member: z.string(),
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  provider: z.string(),
  region: z.string(),
  zone: z.string(),
  host: z.string(),
  port: number,
  egressIP: z.string(),
});

/** The proxy that a lease stands for, as it was when the lease was granted. */
interface LeasedProxy {
  namespace: string;
  name: string;
  uid: string;
  provider: string;
  region: string;
  zone: string;
  host: string;
  port: number;
  /** What sites see; empty when nobody knows yet. */
  egressIP: string;
}

/** A lease without its secrets. Times are in ms since 1970, by Redis's clock. */
export interface Lease {
  id: string;
  /** Name of the API token that took it. */
  tokenName: string;
  owner: string | undefined;
  target: string | undefined;
  acquiredAt: number;
  renewedAt: number;
  expiresAt: number;
  /** No renewal goes past it. */
  maxExpiresAt: number;
  /** `<uid>:<incarnation>`: the one instance that it belongs to. A lease never moves. */
  member: string;
  state: LeaseState;
  proxy: LeasedProxy;
}

/** What only the one who acquires gets to see. */
export interface GrantedLease extends Lease {
  /** Proves to release and renew that the caller is who took the lease. */
  token: string;
  credentials: Credentials | undefined;
}

/** Builds a lease from a hash's fields and values in turn, as Lua's HGETALL returns them. */
export function parseLease(flat: readonly string[], state: LeaseState): Lease {
  const {
    tokenHash: _secret,
    namespace,
    name,
    uid,
    provider,
    region,
    zone,
    host,
    port,
    egressIP,
    ...lease
  } = leaseHash.parse(pairs(flat));
  return { ...lease, state, proxy: { namespace, name, uid, provider, region, zone, host, port, egressIP } };
}

/** The credentials of a registry record: undefined when the proxy needs none. */
export function parseCredentials(json: string): Credentials | undefined {
  return json === "" ? undefined : jsonText(credentials).parse(json);
}

function pairs(flat: readonly string[]): Record<string, string> {
  const fields: Record<string, string> = {};
  for (let at = 0; at + 1 < flat.length; at += 2) fields[flat[at] ?? ""] = flat[at + 1] ?? "";
  return fields;
}
