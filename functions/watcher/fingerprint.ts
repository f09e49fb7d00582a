import { annotationPrefix, finalizer } from "#shared/model/names.ts";
import type { Proxy } from "#shared/model/proxy.ts";

/** What of a Proxy is worth a run when it changes. The status is not: our own writes must not cause runs. */
export interface Fingerprint {
  uid: string;
  /** Everything but the finalizers, as text. */
  content: string;
  finalizers: readonly string[];
}

export function fingerprintOf({ metadata }: Pick<Proxy, "metadata">): Fingerprint {
  const ours = Object.entries(metadata.annotations).filter(([name]) => name.startsWith(annotationPrefix));
  const content = JSON.stringify([
    metadata.generation,
    metadata.deletionTimestamp ?? null,
    sorted(Object.entries(metadata.labels)),
    sorted(ours),
  ]);
  return { uid: metadata.uid, content, finalizers: metadata.finalizers };
}

function sorted(entries: [string, string][]): [string, string][] {
  return entries.sort(([a], [b]) => (a < b ? -1 : 1));
}

/**
 * Whether a change deserves a job. An event that changed the status alone does not: it would pull the delayed retry
 * forward, and one failing Proxy ran 347 times in 10 s. Neither does our own finalizer's arrival.
 */
export function isWorthAJob(before: Fingerprint | undefined, after: Fingerprint): boolean {
  if (before === undefined || before.uid !== after.uid || before.content !== after.content) return true;
  const expected = new Set(before.finalizers).add(finalizer);
  const same =
    before.finalizers.length === after.finalizers.length &&
    after.finalizers.every((each) => before.finalizers.includes(each));
  const onlyOurs = after.finalizers.length === expected.size && after.finalizers.every((each) => expected.has(each));
  return !same && !onlyOurs;
}
