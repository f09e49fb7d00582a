import { expect, vi } from "vitest";
import type { ProxyClient } from "#shared/cluster/proxies.ts";
import type { Fleet } from "#shared/fleet/fleet.ts";
import { ProbeSchedule } from "#shared/fleet/probe-schedule.ts";
import type { Producer } from "#shared/jobs/producer.ts";
import type { Condition, ConditionType } from "#shared/model/condition.ts";
import { member } from "#shared/model/keys.ts";
import { apiVersion } from "#shared/model/names.ts";
import { type Proxy, proxyKey } from "#shared/model/proxy.ts";
import type { InstanceRecord } from "#shared/model/proxy-status.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import type { TestApi } from "#test/kubernetes-api.ts";

const mergePatch = "application/merge-patch+json";
/** How often a condition is looked at, and for how long; what is looked at costs no request. */
const patience = { timeout: 20_000, interval: 10 };

interface UserDeps {
  api: TestApi;
  proxies: ProxyClient;
  redis: RedisClient;
  fleet: Fleet;
  producer: Producer;
}

/** What people, and the health probe, do to Proxies of the test's namespace; and what they see of them. */
export class User {
  readonly #deps: UserDeps;
  readonly #schedule: ProbeSchedule;
  readonly #seen = new Map<string, Proxy>();
  readonly #versions = new Map<string, Set<string>>();

  constructor(deps: UserDeps) {
    this.#deps = deps;
    this.#schedule = new ProbeSchedule({
      redis: deps.redis,
      onUnreadable: (error) => {
        throw error;
      },
    });
  }

  /** Of provider `lab` unless `spec` says otherwise; one probe decides. */
  async apply(name: string, spec: object = {}): Promise<Proxy> {
    const body = {
      apiVersion,
      kind: "Proxy",
      metadata: { name },
      spec: { provider: "lab", healthCheck: { healthyThreshold: 1, unhealthyThreshold: 1 }, ...spec },
    };
    await this.#ask("POST", this.#proxies, body);
    return await this.read(name);
  }

  async patch(name: string, body: object): Promise<void> {
    await this.#ask("PATCH", `${this.#proxies}/${name}`, body);
  }

  async delete(name: string): Promise<void> {
    await this.#ask("DELETE", `${this.#proxies}/${name}`);
  }

  /** Makes or changes a Secret with a login. */
  async saveLogin(name: string, password: string): Promise<void> {
    const stringData = { username: "crawler", password };
    const { status } = await this.#deps.api.call("PATCH", `${this.#secrets}/${name}`, {
      body: { stringData },
      type: mergePatch,
    });
    if (status === 404) await this.#ask("POST", this.#secrets, { metadata: { name }, stringData });
  }

  async deleteSecret(name: string): Promise<void> {
    await this.#ask("DELETE", `${this.#secrets}/${name}`);
  }

  /** As the API server has it now. */
  async read(name: string): Promise<Proxy> {
    const key = { namespace: this.#deps.api.namespace, name };
    const found = await this.#deps.proxies.get(key, { signal: AbortSignal.timeout(10_000) });
    if (found === undefined) throw new Error(`there is no Proxy ${name}`);
    return found;
  }

  /** Makes it a job, as a resync does. */
  async nudge(name: string): Promise<void> {
    const { spec } = await this.read(name);
    await this.#deps.producer.enqueue({ fn: "reconcile", provider: spec.provider }, this.key(name));
  }

  /** One probe of the current incarnation, with this result; a verdict that changed is a job, as the health probe makes it. */
  async probe(name: string, ok = true): Promise<void> {
    const record = await this.#deps.fleet.readByName(this.key(name));
    if (record === undefined) throw new Error(`${name} is not registered`);
    const result = { ok, latencyMs: 12, reason: ok ? "Ok" : "Timeout", message: ok ? "It answers." : "No answer." };
    const probe = { member: member(record.uid, record.incarnation), record };
    const { changed } = await this.#schedule.recordProbe(probe, result);
    const queue = { fn: "reconcile", provider: record.provider } as const;
    if (changed) await this.#deps.producer.enqueue(queue, this.key(name));
  }

  /** Waits until the incarnation runs, lets its probe succeed, and waits until it is Ready. */
  async untilReady(name: string, incarnation = 1): Promise<Proxy> {
    await this.#wait(async () => {
      const record = await this.#deps.fleet.readByName(this.key(name));
      expect(record, `${name}: ${this.#describe(name)}`).toMatchObject({ incarnation });
      if (record?.healthy !== true) await this.probe(name);
    });
    return await this.until(name, (proxy) => {
      expect(conditionOf(proxy, "Ready")).toMatchObject({ status: "True" });
      expect(instanceOf(proxy).incarnation).toBe(incarnation);
      expect(proxy.status.retiring).toBeUndefined();
    });
  }

  /** Waits until what was last seen of it passes the check; answers with that. */
  async until(name: string, check: (proxy: Proxy) => void): Promise<Proxy> {
    return await this.#wait(() => {
      const proxy = this.#seen.get(this.key(name));
      if (proxy === undefined) throw new Error(`Proxy ${name} is not seen`);
      check(proxy);
      return proxy;
    });
  }

  async untilGone(name: string): Promise<void> {
    const key = this.key(name);
    await this.#wait(() => {
      expect(this.#seen.has(key), this.#describe(name)).toBe(false);
      expect(this.#versions.get(key)).toContain("gone"); // rather than not seen yet
    });
  }

  /** How many versions of it were seen so far, the deletion included. */
  versions(name: string): number {
    return this.#versions.get(this.key(name))?.size ?? 0;
  }

  /** Told by the watch. */
  saw(proxy: Proxy): void {
    this.#seen.set(proxyKey(proxy), proxy);
    this.#count(proxyKey(proxy), proxy.metadata.resourceVersion);
  }

  sawGone(key: string): void {
    this.#seen.delete(key);
    this.#count(key, "gone");
  }

  get #proxies(): string {
    return `/apis/${apiVersion}/namespaces/${this.#deps.api.namespace}/proxies`;
  }

  get #secrets(): string {
    return `/api/v1/namespaces/${this.#deps.api.namespace}/secrets`;
  }

  /** What the registry and the queues call it. */
  key(name: string): string {
    return `${this.#deps.api.namespace}/${name}`;
  }

  #count(key: string, version: string): void {
    this.#versions.set(key, (this.#versions.get(key) ?? new Set()).add(version));
  }

  #describe(name: string): string {
    return JSON.stringify(this.#seen.get(this.key(name))?.status ?? "not seen");
  }

  async #wait<T>(check: () => T | Promise<T>): Promise<T> {
    return await vi.waitFor(check, patience);
  }

  async #ask(method: "POST" | "PATCH" | "DELETE", path: string, body?: object): Promise<void> {
    const call = body === undefined ? {} : { body, ...(method === "PATCH" ? { type: mergePatch } : {}) };
    const { status, body: answer } = await this.#deps.api.call(method, path, call);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${answer.message}`);
  }
}

export function conditionOf(proxy: Proxy, type: ConditionType): Condition | undefined {
  return proxy.status.conditions?.find((each) => each.type === type);
}

/** The current incarnation; fails where none is recorded. */
export function instanceOf(proxy: Proxy): InstanceRecord {
  if (proxy.status.instance === undefined) throw new Error(`${proxy.metadata.name} has no instance`);
  return proxy.status.instance;
}
