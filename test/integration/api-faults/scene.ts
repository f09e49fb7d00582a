import { randomBytes } from "node:crypto";
import { expect, onTestFinished, vi } from "vitest";
import { ClusterConnection } from "#shared/cluster/connection.ts";
import { ProxyClient } from "#shared/cluster/proxies.ts";
import type { WatchTiming } from "#shared/cluster/watch.ts";
import { watchProxies } from "#shared/cluster/watch-proxies.ts";
import type { Failure } from "#shared/errors/failure.ts";
import type { Proxy } from "#shared/model/proxy.ts";
import { type ApiProxy, startApiProxy } from "#test/fakes/api-proxy/api-proxy.ts";
import type { TestApi } from "#test/kubernetes-api.ts";

const step = "test/step";

/** What a watch of the scene's Proxies has told so far. */
export interface Followed {
  /** `set NAME STEP` and `gone NAME`. */
  told: string[];
  failures: Failure[];
  codes(): string[];
  missed(): number;
}

/** A namespace of a test's own in an API server, changed directly, and our client behind a fault-injecting proxy. Ends with the test. */
export class Scene {
  readonly api: TestApi;
  readonly proxy: ApiProxy;
  readonly namespace: string;
  readonly connection: ClusterConnection;
  readonly client: ProxyClient;
  readonly call = { signal: new AbortController().signal };

  private constructor(deps: { api: TestApi; proxy: ApiProxy; namespace: string; connection: ClusterConnection }) {
    ({ api: this.api, proxy: this.proxy, namespace: this.namespace, connection: this.connection } = deps);
    this.client = new ProxyClient(deps);
  }

  static async begin(api: TestApi, options: { deadlineMs?: number } = {}): Promise<Scene> {
    const namespace = `faults-${randomBytes(4).toString("hex")}`;
    const created = await api.call("POST", "/api/v1/namespaces", { body: { metadata: { name: namespace } } });
    expect(created.status).toBe(201);
    const proxy = await startApiProxy({ backend: api.kubeconfigFile });
    onTestFinished(() => proxy.stop());
    const connection = ClusterConnection.load({
      kubeconfigFile: proxy.kubeconfigFile,
      userAgent: "tester",
      ...options,
    });
    onTestFinished(() => connection.close());
    return new Scene({ api, proxy, namespace, connection });
  }

  async create(name: string, finalizers: string[] = []): Promise<Proxy> {
    const metadata = { name, finalizers, annotations: { [step]: "0" } };
    const body = { apiVersion: "crawl.example.com/v1alpha1", kind: "Proxy", metadata, spec: { provider: "lab" } };
    expect((await this.api.call("POST", this.#path(), { body })).status).toBe(201);
    return await this.read(name);
  }

  /** Changes a Proxy in a way that a watch tells of. */
  async touch(name: string, to: string): Promise<void> {
    const body = { metadata: { annotations: { [step]: to } } };
    const type = "application/merge-patch+json";
    expect((await this.api.call("PATCH", this.#path(name), { body, type })).status).toBe(200);
  }

  async remove(name: string): Promise<void> {
    expect((await this.api.call("DELETE", this.#path(name))).status).toBe(200);
  }

  /** Through our client, without faults being counted: scripted ones match by verb, so read before adding them. */
  async read(name: string): Promise<Proxy> {
    const found = await this.client.get({ namespace: this.namespace, name }, this.call);
    if (found === undefined) throw new Error(`no Proxy ${name}`);
    return found;
  }

  /** The version that the API server itself has. */
  async version(name: string): Promise<unknown> {
    return (await this.api.call("GET", this.#path(name))).body.metadata["resourceVersion"];
  }

  /** Follows the namespace's Proxies; resolves once the first list was told. */
  async follow(timing: Partial<WatchTiming> = {}): Promise<Followed> {
    const told: string[] = [];
    const failures: Failure[] = [];
    let [missed, synced] = [0, false];
    const end = new AbortController();
    const done = watchProxies({
      connection: this.connection,
      namespaces: [this.namespace],
      onSet: async ({ metadata }) => void told.push(`set ${metadata.name} ${metadata.annotations[step]}`),
      onGone: async (key) => void told.push(`gone ${key.split("/")[1]}`),
      onSynced: () => {
        synced = true;
      },
      onMissed: (count) => {
        missed += count;
      },
      onUnreadable: (key, fields) => void told.push(`unreadable ${key} ${fields}`),
      onFailure: (failure) => failures.push(failure),
      signal: end.signal,
      timing: { firstBackoffMs: 5, lastBackoffMs: 20, shortestMs: 0, ...timing },
    });
    onTestFinished(async () => {
      end.abort();
      await done;
    });
    await vi.waitFor(() => expect(synced).toBe(true), 10_000);
    return { told, failures, codes: () => failures.map(({ code }) => code), missed: () => missed };
  }

  /** Until the nth watch has begun: what changes from now on is for it to tell. */
  async watching(nth = 1): Promise<void> {
    const begun = () => this.proxy.requests.filter(({ verb, status }) => verb === "watch" && status === 200);
    await vi.waitFor(() => expect(begun().length).toBeGreaterThanOrEqual(nth), 10_000);
  }

  count(verb: string): number {
    return this.proxy.requests.filter((request) => request.verb === verb).length;
  }

  #path(name?: string): string {
    const all = `/apis/crawl.example.com/v1alpha1/namespaces/${this.namespace}/proxies`;
    return name === undefined ? all : `${all}/${name}`;
  }
}

/** Polls until a watch has told exactly this. */
export async function expectTold(followed: Followed, told: string[]): Promise<void> {
  await vi.waitFor(() => expect(followed.told).toEqual(told), 10_000);
}
