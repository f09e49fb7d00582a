import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { CoreV1Api, type V1Pod } from "@kubernetes/client-node";
import { pino } from "pino";
import { ClusterConnection } from "#shared/cluster/connection.ts";
import { isNotFound } from "#shared/errors/failure.ts";
import type { Credentials } from "#shared/model/registry-record.ts";
import { podManifest, secretManifest } from "#shared/provider/kubernetes/manifests.ts";
import { kubernetesSettings } from "#shared/provider/kubernetes/settings.ts";
import { type KubernetesApi, startKubernetesApi } from "../kubernetes-api/start.ts";
import { type RunningNodeAgent, startNodeAgent } from "./node-agent.ts";
import { serviceNameOf } from "./squid-command.ts";

export const login: Credentials = { username: "crawler", password: "pass word" };
const namespace = "default";

/** A small Kubernetes API and what a test does with it: Pods of the provider, agents, a look at this machine. */
export class ScratchNode {
  readonly core: CoreV1Api;
  readonly #dir: string;
  readonly #api: KubernetesApi;
  readonly #connection: ClusterConnection;
  readonly #stops: (() => Promise<void>)[] = [];

  private constructor(dir: string, api: KubernetesApi, connection: ClusterConnection) {
    [this.#dir, this.#api, this.#connection] = [dir, api, connection];
    this.core = connection.api(CoreV1Api, { signal: new AbortController().signal });
  }

  static async make(): Promise<ScratchNode> {
    const dir = await mkdtemp(path.join(tmpdir(), "node agent-"));
    const api = await startKubernetesApi({
      port: 0,
      host: "127.0.0.1",
      dataFile: path.join(dir, "api.json"),
      crds: [],
    });
    const kubeconfigFile = path.join(dir, "kubeconfig");
    await writeFile(kubeconfigFile, api.kubeconfig);
    return new ScratchNode(dir, api, ClusterConnection.load({ kubeconfigFile, userAgent: "test" }));
  }

  async startAgent(): Promise<RunningNodeAgent> {
    const [kubeconfigFile, log] = [path.join(this.#dir, "kubeconfig"), pino({ level: "silent" })];
    const agent = await startNodeAgent({ kubeconfigFile, dir: this.#dir, log });
    this.#stops.push(() => agent.stop());
    return agent;
  }

  /** An agent in a process of its own, to be killed. */
  async spawnAgent(): Promise<{ kill(): Promise<void> }> {
    const options = JSON.stringify({ kubeconfigFile: path.join(this.#dir, "kubeconfig"), dir: this.#dir });
    const program = `import { pino } from "pino";
      import { startNodeAgent } from "#infra/local/node-agent/node-agent.ts";
      await startNodeAgent({ ...${options}, log: pino({ level: "silent" }) });`;
    const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", program], {
      stdio: ["ignore", "ignore", "inherit"],
      cwd: path.join(import.meta.dirname, "../../.."),
    });
    const kill = async (): Promise<void> => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    };
    this.#stops.push(kill);
    return { kill };
  }

  /** A Pod with its Secret, as the kubernetes provider makes them; `change` is done to the Pod before it is created. */
  async createPod(
    name: string,
    options: { port: number; allowDestinations?: string[]; change?: (pod: V1Pod) => void; withSecret?: boolean },
  ): Promise<string> {
    const request = {
      name,
      namespace,
      proxyName: name,
      uid: `uid-of-${name}`,
      incarnation: 1,
      installation: "test",
      placement: {},
      zone: "",
      port: options.port,
      auth: login,
    };
    const settings = kubernetesSettings.parse({
      allowDestinations: options.allowDestinations ?? [],
      connectPorts: [443, ...(options.allowDestinations ?? []).map((each) => Number(each.split(":")[1]))],
    });
    const [secret, pod] = [secretManifest(request, settings), podManifest(request, settings)];
    // The Proxy that would own them does not exist here.
    for (const each of [secret, pod]) delete each.metadata?.ownerReferences;
    options.change?.(pod);
    if (options.withSecret !== false) await this.core.createNamespacedSecret({ namespace, body: secret });
    const created = await this.core.createNamespacedPod({ namespace, body: pod });
    return created.metadata?.uid ?? "";
  }

  async pod(name: string): Promise<V1Pod | undefined> {
    try {
      return await this.core.readNamespacedPod({ namespace, name });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** The Pod's Ready condition, or undefined. */
  async isReady(name: string): Promise<string | undefined> {
    return (await this.pod(name))?.status?.conditions?.find(({ type }) => type === "Ready")?.status;
  }

  async remove(): Promise<void> {
    for (const stop of this.#stops) await stop();
    await this.#connection.close();
    await this.#api.stop();
    await rm(this.#dir, { recursive: true, force: true });
  }
}

/** Process ids of the Pod's Squids on this machine. */
export async function squidsOf(uid: string): Promise<number[]> {
  const found: number[] = [];
  for (const entry of await readdir("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    // Processes end while we look.
    const command = await readFile(`/proc/${entry}/cmdline`, "utf8").catch(() => "");
    if (command.split("\0").includes(serviceNameOf(uid))) found.push(Number(entry));
  }
  return found;
}

/** Files that the Pod's Squid has in shared memory. */
export async function sharedMemoryOf(uid: string): Promise<string[]> {
  return (await readdir("/dev/shm")).filter((file) => file.startsWith(`${serviceNameOf(uid)}-`));
}
