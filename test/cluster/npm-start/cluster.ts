import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect } from "vitest";
import { z } from "zod";
import { describeRight, type Right } from "#infra/local/given-cluster/rights.ts";
import { makeKubeconfig } from "#infra/local/kubeconfig.ts";
import { ApiClient } from "#test/api-client.ts";
import { findBinaries } from "#test/cluster/binaries.ts";
import { type ControlPlane, startControlPlane } from "#test/cluster/control-plane.ts";
import { kubectl } from "#test/kubectl.ts";

const namespaced = z.looseObject({ items: z.array(z.looseObject({ metadata: z.object({ name: z.string() }) })) });

/** Somebody's cluster: a control plane that has heard nothing of us, and users of it. */
export class SomeCluster {
  /** For files of the test's own; goes with `stop`. */
  readonly dir: string;
  readonly admin: ApiClient;
  readonly #plane: ControlPlane;

  private constructor(dir: string, plane: ControlPlane) {
    [this.dir, this.#plane, this.admin] = [dir, plane, new ApiClient(plane)];
  }

  static async start(): Promise<SomeCluster> {
    const binaries = findBinaries();
    if (binaries === undefined) throw new Error("there is no kube-apiserver: npm run test:cluster builds it");
    const dir = await mkdtemp(path.join(tmpdir(), "some-cluster-"));
    return new SomeCluster(dir, await startControlPlane({ binaries }));
  }

  get adminKubeconfig(): string {
    return this.#plane.adminKubeconfig;
  }

  get server(): string {
    return this.#plane.url;
  }

  /** A user who may do this and nothing else. Answers with the path of a kubeconfig. */
  async addUser(name: string, rights: readonly Right[]): Promise<string> {
    const accounts = "/api/v1/namespaces/default/serviceaccounts";
    await this.create(accounts, { metadata: { name } });
    const rbac = "/apis/rbac.authorization.k8s.io/v1";
    // Of the whole cluster: the namespaces are not there yet.
    const rules = rights.map(({ verb, group, resource, name: only }) => ({
      apiGroups: [group],
      resources: [resource],
      verbs: [verb],
      ...(only === undefined ? {} : { resourceNames: [only] }),
    }));
    await this.create(`${rbac}/clusterroles`, { metadata: { name }, rules });
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name };
    const subjects = [{ kind: "ServiceAccount", name, namespace: "default" }];
    await this.create(`${rbac}/clusterrolebindings`, { metadata: { name }, roleRef, subjects });
    const answer = await this.create(`${accounts}/${name}/token`, { spec: { expirationSeconds: 3600 } });
    const { token } = z.object({ status: z.object({ token: z.string() }) }).parse(answer).status;
    const file = path.join(this.dir, `${name}.kubeconfig`);
    await writeFile(file, makeKubeconfig({ ...this.#plane, token }), { mode: 0o600 });
    const last = rights.at(-1);
    if (last !== undefined) await this.#untilGranted(file, last);
    return file;
  }

  async create(target: string, body: object): Promise<object> {
    const answer = await this.admin.call("POST", target, { body });
    expect(answer.status, `${target}: ${answer.text}`).toBe(201);
    return answer.body;
  }

  /** Names of what is listed there. */
  async names(target: string): Promise<string[]> {
    const { body } = await this.admin.call("GET", target);
    return namespaced.parse(body).items.map(({ metadata }) => metadata.name);
  }

  /** Runs a line of a shell in which `kubectl` is a real one. Answers with all that it printed, and the exit code. */
  async shell(line: string, input = ""): Promise<{ code: number; output: string }> {
    const folder = path.dirname(await kubectl("1.35"));
    const env = { PATH: `${folder}:${process.env["PATH"]}`, KUBECONFIG: this.adminKubeconfig, HOME: this.dir };
    return await new Promise((resolve) => {
      const child = execFile("sh", ["-c", line], { env, timeout: 60_000 }, (error, out, err) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: out + err }),
      );
      child.stdin?.end(input);
    });
  }

  async stop(): Promise<void> {
    await this.admin.close();
    await this.#plane.stop();
    await rm(this.dir, { recursive: true, force: true });
  }

  /** The authorizer learns of a role a moment after it was made. */
  async #untilGranted(kubeconfig: string, right: Right): Promise<void> {
    const { verb, resource, name = "" } = right;
    const ask = `kubectl --kubeconfig ${kubeconfig} auth can-i ${verb} ${resource} ${name} -A`;
    await expect
      .poll(async () => (await this.shell(ask)).output, { timeout: 20_000, message: describeRight(right) })
      .toContain("yes");
  }
}
