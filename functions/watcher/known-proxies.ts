import { type Proxy, proxyKey } from "#shared/model/proxy.ts";
import { type Phase, phases } from "#shared/model/proxy-status.ts";
import { type Fingerprint, fingerprintOf, isWorthAJob } from "./fingerprint.ts";

export interface KnownProxy {
  fingerprint: Fingerprint;
  provider: string;
  phase: Phase;
}

/** What the watcher keeps of each Proxy: enough to tell whether an event is worth a job, and a few hundred bytes. */
export class KnownProxies {
  readonly #proxies = new Map<string, KnownProxy>();

  /** Takes in what was seen; tells whether it is worth a job. */
  see(proxy: Proxy): boolean {
    const key = proxyKey(proxy);
    const before = this.#proxies.get(key);
    const fingerprint = fingerprintOf(proxy);
    this.#proxies.set(key, { fingerprint, provider: proxy.spec.provider, phase: proxy.status.phase ?? "Pending" });
    return isWorthAJob(before?.fingerprint, fingerprint);
  }

  /** Whatever is seen of it next is worth a job: the last one could not be enqueued. */
  doubt(key: string): void {
    const known = this.#proxies.get(key);
    if (known !== undefined) known.fingerprint = { ...known.fingerprint, content: "" };
  }

  forget(key: string): void {
    this.#proxies.delete(key);
  }

  get(key: string): KnownProxy | undefined {
    return this.#proxies.get(key);
  }

  keys(): string[] {
    return [...this.#proxies.keys()];
  }

  /** How many are in each phase; every phase is there, zero included. */
  countByPhase(): Map<Phase, number> {
    const counts = new Map<Phase, number>(phases.map((phase) => [phase, 0]));
    for (const { phase } of this.#proxies.values()) counts.set(phase, (counts.get(phase) ?? 0) + 1);
    return counts;
  }
}
