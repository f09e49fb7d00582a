import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { inject } from "vitest";
import { z } from "zod";
import { makeKubeconfig } from "#infra/local/kubeconfig.ts";
import type { ApiAccess } from "#test/cluster/api-server.ts";
import { compactEtcd } from "#test/cluster/etcd.ts";
import { startWithDefinitions } from "#test/cluster/start-with-definitions.ts";
import { ApiClient } from "./api-client.ts";
import { SmallApi } from "./small-api.ts";

interface TestApiParts {
  access: ApiAccess;
  /** Absent for the small API. */
  etcdUrl?: string;
  /** Absent where the server is shared. */
  restart?: () => Promise<void>;
  end: () => Promise<void>;
}

export interface TestApiOptions {
  /** A server that no other test file talks to, where a test restarts it or needs to be alone: a real one takes 3 s. */
  own?: boolean;
}

/**
 * A Kubernetes API, and a namespace in it that is the test's own: the small API in vitest's project `small`, a real
 * kube-apiserver, shared by all test files, in project `real`.
 */
export class TestApi extends ApiClient {
  /** For files of the test's own; goes with `stop`. */
  readonly dir: string;
  readonly namespace = `test-${randomBytes(4).toString("hex")}`;
  readonly #parts: TestApiParts;

  private constructor(dir: string, parts: TestApiParts) {
    super(parts.access);
    [this.dir, this.#parts] = [dir, parts];
  }

  static async start(options: TestApiOptions = {}): Promise<TestApi> {
    const dir = await mkdtemp(path.join(tmpdir(), "test-api-"));
    const api = new TestApi(dir, await findApi(options));
    try {
      await writeFile(api.kubeconfigFile, api.#kubeconfig(api.access.token), { mode: 0o600 });
      await api.addNamespace(api.namespace);
      return api;
    } catch (error) {
      await api.stop();
      throw error;
    }
  }

  /** Gives its reader all rights; its default namespace is the test's own. */
  get kubeconfigFile(): string {
    return path.join(this.dir, "kubeconfig");
  }

  /** Some of what a real one does is not worth having in the small one: a test that knows says so. */
  get isReal(): boolean {
    return this.#parts.etcdUrl !== undefined;
  }

  /** With the ServiceAccount that every Pod needs: a cluster's controllers would add it, and the small API has none. */
  async addNamespace(name: string): Promise<void> {
    await this.#create("/api/v1/namespaces", { metadata: { name } });
    if (this.isReal)
      await this.#create(`/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: "default" } });
  }

  /** A token of a ServiceAccount of the test's namespace, good for an hour; a real API only. */
  async tokenFor(account: string): Promise<string> {
    const target = `/api/v1/namespaces/${this.namespace}/serviceaccounts/${account}/token`;
    const answer = await this.#create(target, { spec: { expirationSeconds: 3600 } });
    return z.looseObject({ status: z.looseObject({ token: z.string() }) }).parse(answer).status.token;
  }

  /** Writes a kubeconfig with such a token. Answers with the file's path. */
  async kubeconfigFor(account: string): Promise<string> {
    const file = path.join(this.dir, `${account}.kubeconfig`);
    await writeFile(file, this.#kubeconfig(await this.tokenFor(account)), { mode: 0o600 });
    return file;
  }

  /** Restarts an `own` one so that no list can be continued, and no watch begin, at a version from before. */
  async forgetVersions(): Promise<void> {
    if (this.#parts.etcdUrl !== undefined) await compactEtcd(this.#parts.etcdUrl);
    await this.restart(); // a kube-apiserver keeps a while of history in its memory, the small one all of it
  }

  /** Ends the server, a real one by kill -9, and starts it again at the same address with what it had stored. */
  async restart(): Promise<void> {
    if (this.#parts.restart === undefined) throw new Error("other tests use this API too: start an `own` one");
    await this.#parts.restart();
  }

  async stop(): Promise<void> {
    await this.#parts.end();
    await this.close();
    await rm(this.dir, { recursive: true, force: true });
  }

  #kubeconfig(token: string): string {
    return makeKubeconfig({ ...this.access, token, namespace: this.namespace });
  }

  async #create(target: string, body: object): Promise<object> {
    const answer = await this.call("POST", target, { body });
    if (answer.status !== 201) throw new Error(`POST ${target}: ${answer.status} ${answer.text}`);
    return answer.body;
  }
}

async function findApi({ own = false }: TestApiOptions): Promise<TestApiParts> {
  const shared = inject("controlPlane");
  if (shared === null) {
    const small = await SmallApi.start();
    return { access: small.access, restart: () => small.restart(), end: () => small.stop() };
  }
  if (!own) return { access: shared, etcdUrl: shared.etcdUrl, end: () => Promise.resolve() };
  const plane = await startWithDefinitions();
  return { access: plane, etcdUrl: plane.etcdUrl, restart: () => plane.restartApiServer(), end: () => plane.stop() };
}
