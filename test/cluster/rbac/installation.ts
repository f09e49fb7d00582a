import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { pino } from "pino";
import { stringify } from "yaml";
import { z } from "zod";
import { rbacFile } from "#infra/cluster/grants.ts";
import { makeKubeconfig } from "#infra/local/kubeconfig.ts";
import { startNodeAgent } from "#infra/local/node-agent/node-agent.ts";
import { ApiClient } from "#test/api-client.ts";
import { findBinaries } from "#test/cluster/binaries.ts";
import { type ControlPlane, startControlPlane } from "#test/cluster/control-plane.ts";
import { kubectl } from "#test/kubectl.ts";
import { freePort, startRedis } from "#test/redis.ts";
import { AuditLog } from "./audit-log.ts";

const root = path.join(import.meta.dirname, "../../..");
const definitions = path.join(root, "charts/egress-proxies/crds");
/** The names that rbac.yaml has. */
export const productNamespace = "egress-proxies";
export const proxiesNamespace = "crawl";
const providers = [
  { name: "lab", type: "kubernetes" },
  { name: "bad", type: "kubernetes", kubernetes: { nodeSelector: { "no label": "" } } },
];
const accounts = ["watcher", "functions", "lease-api"] as const;
export type Account = (typeof accounts)[number];

/**
 * The product as rbac.yaml means it, on a real API server that writes down all requests: a process for each role, with
 * the token of its own ServiceAccount, and our node agent for the cluster's kubelets.
 */
export class RbacInstallation {
  readonly admin: ApiClient;
  readonly audit: AuditLog;
  readonly leasePort: number;
  readonly #plane: ControlPlane;
  readonly #dir: string;
  readonly #env: Record<string, string>;
  readonly #processes = new Map<Account, ChildProcess>();
  readonly #ends: (() => Promise<unknown>)[];

  private constructor(made: {
    plane: ControlPlane;
    dir: string;
    audit: AuditLog;
    redisUrl: string;
    leasePort: number;
    ends: (() => Promise<unknown>)[];
  }) {
    [this.#plane, this.#dir, this.#ends] = [made.plane, made.dir, made.ends];
    [this.audit, this.leasePort, this.admin] = [made.audit, made.leasePort, new ApiClient(made.plane)];
    this.#ends.push(() => this.admin.close());
    this.#env = {
      REDIS_URL: made.redisUrl,
      POD_NAMESPACE: productNamespace,
      WATCH_NAMESPACES: proxiesNamespace,
      PROVIDERS_FILE: path.join(this.#dir, "providers.yaml"),
      // Short, so that the same event comes again, which is counted in the one that is there.
      PERMANENT_RETRY_SECONDS: "11",
      LEASE_API_HOST: "127.0.0.1",
      LEASE_API_PORT: String(made.leasePort),
      LEASE_API_INSECURE_NO_AUTH: "true",
      ADMIN_HOST: "127.0.0.1",
      ADMIN_PORT: "0",
      LOG_LEVEL: "warn",
    };
  }

  /** Starts everything but the product's processes. */
  static async make(): Promise<RbacInstallation> {
    const binaries = findBinaries();
    if (binaries === undefined) throw new Error("there is no kube-apiserver: npm run test:cluster builds it");
    const dir = await mkdtemp(path.join(tmpdir(), "rbac-"));
    const ends: (() => Promise<unknown>)[] = [() => rm(dir, { recursive: true, force: true })];
    try {
      const audit = new AuditLog(dir);
      const plane = await startControlPlane({ binaries, apiServerArgs: await audit.serverArgs() });
      ends.push(() => plane.stop());
      const env = { PATH: process.env["PATH"], KUBECONFIG: plane.adminKubeconfig, HOME: dir };
      const run = promisify(execFile);
      await run(await kubectl("1.35"), ["apply", "-f", definitions, "-f", rbacFile], { env, timeout: 30_000 });
      const redis = await startRedis();
      ends.push(() => redis.stop());
      const log = pino({ level: "silent" });
      const agent = await startNodeAgent({ kubeconfigFile: plane.adminKubeconfig, dir, log });
      ends.push(() => agent.stop());
      await writeFile(path.join(dir, "providers.yaml"), stringify({ providers }));
      const leasePort = await freePort();
      return new RbacInstallation({ plane, dir, audit, redisUrl: redis.url, leasePort, ends });
    } catch (error) {
      await endAll(ends);
      throw error;
    }
  }

  static userOf(account: Account): string {
    return `system:serviceaccount:${productNamespace}:egress-proxies-${account}`;
  }

  /** Starts the process of a role, or starts it again. The lease API gets no kubeconfig. */
  async start(role: Account): Promise<void> {
    await this.#end(role);
    const kubeconfig = path.join(this.#dir, `${role}.kubeconfig`);
    if (role !== "lease-api") {
      const token = await this.tokenOf(role);
      await writeFile(kubeconfig, makeKubeconfig({ ...this.#plane, token }), { mode: 0o600 });
    }
    const child = spawn(process.execPath, [path.join(root, "functions/run.ts"), role], {
      env: { ...process.env, ...this.#env, ...(role === "lease-api" ? {} : { KUBECONFIG: kubeconfig }) },
      stdio: ["ignore", "ignore", "inherit"],
    });
    this.#processes.set(role, child);
  }

  async tokenOf(account: Account): Promise<string> {
    const target = `/api/v1/namespaces/${productNamespace}/serviceaccounts/egress-proxies-${account}/token`;
    const answer = await this.admin.call("POST", target, { body: { spec: { expirationSeconds: 3600 } } });
    return z.looseObject({ status: z.looseObject({ token: z.string() }) }).parse(answer.body).status.token;
  }

  /** An API client with the account's rights. Close it. */
  async clientOf(account: Account): Promise<ApiClient> {
    return new ApiClient({ ...this.#plane, token: await this.tokenOf(account) });
  }

  async stop(): Promise<void> {
    for (const account of accounts) await this.#end(account);
    await endAll(this.#ends);
  }

  async #end(account: Account): Promise<void> {
    const child = this.#processes.get(account);
    this.#processes.delete(account);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  }
}

async function endAll(ends: (() => Promise<unknown>)[]): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}
