import { type Proxy, proxyKey, secretsOf } from "#shared/model/proxy.ts";
import { type Phase, phases } from "#shared/model/proxy-status.ts";
import { type Fingerprint, fingerprintOf, isWorthAJob } from "./fingerprint.ts";

export interface KnownProxy {
  fingerprint: Fingerprint;
  provider: string;
  phase: Phase;
  /** `<namespace>/<name>` of the Secrets that it names. */
  secrets: readonly string[];
}

/** What the watcher keeps of each Proxy: enough to tell whether an event is worth a job, and a few hundred bytes. */
export class KnownProxies {
  readonly #proxies = new Map<string, KnownProxy>();
  readonly #bySecret = new Map<string, Set<string>>();

  /** Takes in what was seen; tells whether it is worth a job. */
  see(proxy: Proxy): boolean {
    const key = proxyKey(proxy);
    const before = this.#proxies.get(key);
    const fingerprint = fingerprintOf(proxy);
    this.forget(key);
    const secrets = secretsOf(proxy);
    this.#proxies.set(key, {
      fingerprint,
      provider: proxy.spec.provider,
      phase: proxy.status.phase ?? "Pending",
      secrets,
    });
    for (const secret of secrets) this.#bySecret.set(secret, (this.#bySecret.get(secret) ?? new Set()).add(key));
    return isWorthAJob(before?.fingerprint, fingerprint);
  }

  /** Whatever is seen of it next is worth a job: the last one could not be enqueued. */
  doubt(key: string): void {
    const known = this.#proxies.get(key);
    if (known !== undefined) known.fingerprint = { ...known.fingerprint, content: "" };
  }

  forget(key: string): void {
    for (const secret of this.#proxies.get(key)?.secrets ?? []) {
      const users = this.#bySecret.get(secret);
      users?.delete(key);
      if (users?.size === 0) this.#bySecret.delete(secret);
    }
    this.#proxies.delete(key);
  }

  get(key: string): KnownProxy | undefined {
    return this.#proxies.get(key);
  }

  keys(): string[] {
    return [...this.#proxies.keys()];
  }

  /** The Proxies that name a Secret. */
  keysNaming(secret: string): string[] {
    return [...(this.#bySecret.get(secret) ?? [])];
  }

  /** How many are in each phase; every phase is there, zero included. */
  countByPhase(): Map<Phase, number> {
    const counts = new Map<Phase, number>(phases.map((phase) => [phase, 0]));
    for (const { phase } of this.#proxies.values()) counts.set(phase, (counts.get(phase) ?? 0) + 1);
    return counts;
  }
}
