/**
 * Names of our Redis keys. All fleet and lease keys carry the hash tag `{ep}`, so that one script may touch several of
 * them on Redis Cluster; queues carry one tag per provider, so that they spread over shards.
 */

/** `<uid>:<incarnation>`: names one instance of one Proxy in every index. */
export type Member = `${string}:${number}`;

export function member(uid: string, incarnation: number): Member {
  return `${uid}:${incarnation}`;
}

export function parseMember(value: string): { uid: string; incarnation: number } {
  const at = value.lastIndexOf(":");
  return { uid: value.slice(0, at), incarnation: Number(value.slice(at + 1)) };
}

export const keys = {
  /** String. A random id of this Redis data set, written by the watcher once it is filled: absent means "emptied". */
  epoch: "{ep}:epoch",
  /** String. The id under which the watcher fills an empty data set; gone once it is filled or emptied again. */
  epochFilling: "{ep}:epoch-filling",
  /** Hash, one per instance: see `registryRecord`. */
  record: (id: Member) => `{ep}:px:${id}`,
  /** Hash: member -> `<namespace>/<name>`. Every registered instance, whatever its state. */
  members: "{ep}:members",
  /** Hash: `<namespace>/<name>` -> member of its current incarnation. */
  names: "{ep}:names",
  /** Set, one per `<namespace>/<name>`: all its members, retiring ones too. */
  membersOfName: (key: string) => `{ep}:named:${key}`,
  /** Hash: bucket -> how many members it has, of those that have any. See `bucket`. */
  buckets: "{ep}:buckets",
  /**
   * Sorted set of the members of one bucket that can take a lease now (healthy, not draining, leases < max), by `rank`.
   * Fleet scripts add and remove as health, draining and max change; lease scripts as leases come and go.
   */
  free: (bucketName: string) => `{ep}:free:${bucketName}`,
  /** Sorted set per provider: member -> time of its next probe, in Redis ms. */
  due: (provider: string) => `{ep}:due:${provider}`,
  /** Set of providers that have a due set. */
  dueProviders: "{ep}:due-providers",
  /** Hash: counters of a member's probes in a row. */
  probe: (id: Member) => `{ep}:probe:${id}`,
  /** Hash, one per lease: see shared/lease. */
  lease: (id: string) => `{ep}:lease:${id}`,
  /** Sorted set: `<lease id>|<member>` -> expiry, in Redis ms. Names the member, so that it outlives the lease's hash. */
  leaseExpiry: "{ep}:lease-expiry",
  /** Sorted set: lease id -> expiry, of one instance. */
  leasesOfMember: (id: Member) => `{ep}:leases-of:${id}`,
  /** Sorted set: lease id -> expiry, of all leases that one API token took. */
  leasesOfToken: (tokenName: string) => `{ep}:leases-of-token:${tokenName}`,
  /** Set of all queues that anybody enqueued to: `<prefix>:<name>`. */
  queues: "{ep}:queues",
} as const;

/** `{ep:q:<provider>}` for a provider's queues, `{ep:q}` for those of no provider. */
export function queuePrefix(provider?: string): string {
  return provider === undefined ? "{ep:q}" : `{ep:q:${provider}}`;
}

/**
 * Hash `{gen, run, fails}` of one job key. One per function and key, whatever queue it waits in: with one per queue, a
 * Proxy that moved between queues ran twice at once.
 */
export function jobKey(fn: string, key: string): string {
  return `{ep:job:${fn}:${key}}`;
}

export interface BucketParts {
  namespace: string;
  provider: string;
  region: string;
  zone: string;
}

/** Instances that are alike for a selector share a bucket. Regions and zones are a user's words: any character may come. */
export function bucket({ namespace, provider, region, zone }: BucketParts): string {
  return [namespace, provider, region, zone].map(encodeURIComponent).join("|");
}

export function parseBucket(name: string): BucketParts {
  const [namespace = "", provider = "", region = "", zone = ""] = name.split("|").map(decodeURIComponent);
  return { namespace, provider, region, zone };
}
