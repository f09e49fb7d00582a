import { z } from "zod";
import type { GrantedLease, Lease } from "#shared/lease/lease.ts";
import { leaseStates } from "#shared/lease/lease.ts";

const time = z.iso.datetime();

const leasedProxy = z.object({
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  provider: z.string(),
  region: z.string(),
  zone: z.string(),
  host: z.string(),
  port: z.int(),
  egressIP: z.string().describe("Address that sites see; empty while nobody knows it."),
});

/** A lease as lists and reads show it: no token, no credentials. */
export const leaseAnswer = z.object({
  id: z.string(),
  owner: z.string().optional(),
  target: z.string().optional(),
  state: z.enum(leaseStates),
  acquiredAt: time,
  renewedAt: time,
  expiresAt: time,
  maxExpiresAt: time,
  proxy: leasedProxy,
});

/** A lease as only the one who acquires it sees it. */
export const grantAnswer = leaseAnswer.extend({
  token: z.string().describe("For the header Lease-Token. Shown only here."),
  proxy: leasedProxy.extend({ url: z.string().describe("With the credentials of the proxy, if it needs any.") }),
});

export const leaseList = z.object({ leases: z.array(leaseAnswer), nextCursor: z.string().optional() });

export function toLeaseAnswer(lease: Lease): z.infer<typeof leaseAnswer> {
  const iso = (ms: number): string => new Date(ms).toISOString();
  return {
    id: lease.id,
    ...(lease.owner === undefined ? {} : { owner: lease.owner }),
    ...(lease.target === undefined ? {} : { target: lease.target }),
    state: lease.state,
    acquiredAt: iso(lease.acquiredAt),
    renewedAt: iso(lease.renewedAt),
    expiresAt: iso(lease.expiresAt),
    maxExpiresAt: iso(lease.maxExpiresAt),
    proxy: lease.proxy,
  };
}

export function toGrantAnswer(lease: GrantedLease): z.infer<typeof grantAnswer> {
  return { ...toLeaseAnswer(lease), token: lease.token, proxy: { ...lease.proxy, url: proxyUrl(lease) } };
}

/** What goes into HTTPS_PROXY or `curl --proxy`. */
export function proxyUrl({ proxy, credentials }: Pick<GrantedLease, "proxy" | "credentials">): string {
  const host = proxy.host.includes(":") ? `[${proxy.host}]` : proxy.host;
  const user =
    credentials === undefined
      ? ""
      : `${encodeURIComponent(credentials.username)}:${encodeURIComponent(credentials.password)}@`;
  return `http://${user}${host}:${proxy.port}`;
}
