import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { CoreV1Api, CustomObjectsApi, type V1Pod } from "@kubernetes/client-node";
import { parse } from "yaml";
import { z } from "zod";
import { startKubernetesApi } from "#infra/local/kubernetes-api/start.ts";
import { ClusterConnection } from "#shared/cluster/connection.ts";
import { isNotFound } from "#shared/errors/failure.ts";
import { apiVersion, group, version } from "#shared/model/names.ts";
import type { CreateRequest } from "#shared/provider/contract.ts";
import { withDeadline } from "#shared/provider/decorators/deadline.ts";
import { withMetrics } from "#shared/provider/decorators/metrics.ts";
import { type Objects, type PodCluster, podCluster } from "#shared/provider/kubernetes/objects.ts";
import { ownerLabels } from "#shared/provider/kubernetes/owner-labels.ts";
import { KubernetesProvider } from "#shared/provider/kubernetes/provider.ts";
import { kubernetesSettings } from "#shared/provider/kubernetes/settings.ts";
import type { CallHook, ConformanceBackend } from "./backend.ts";

const namespace = "default";
const crdFile = "charts/egress-proxies/crds/proxies.yaml";

/** The small Kubernetes API, and a connection to it as production makes it. */
export async function startApi() {
  const dir = await mkdtemp(path.join(tmpdir(), "conformance-"));
  const crd = z.looseObject({}).parse(parse(await readFile(crdFile, "utf8")));
  const dataFile = path.join(dir, "state.json");
  const api = await startKubernetesApi({ port: 0, host: "127.0.0.1", dataFile, crds: [crd] });
  const kubeconfigFile = path.join(dir, "kubeconfig");
  await writeFile(kubeconfigFile, api.kubeconfig);
  const connection = ClusterConnection.load({ kubeconfigFile, userAgent: "conformance" });
  const stop = async (): Promise<void> => {
    await connection.close();
    await api.stop();
    await rm(dir, { recursive: true });
  };
  return { connection, stop };
}

/** The kubernetes provider against the small Kubernetes API. */
export async function kubernetesBackend(): Promise<ConformanceBackend> {
  const { connection, stop } = await startApi();
  const hooks = new Hooks();
  const coreApi = (call: { signal: AbortSignal }): CoreV1Api => connection.api(CoreV1Api, call);
  const admin = new PodAdmin(coreApi({ signal: new AbortController().signal }));
  const real = podCluster(coreApi);
  const hooked: PodCluster = { pods: hooks.around(real.pods), secrets: hooks.around(real.secrets) };
  let brokenNamespace = false;
  return {
    provider: (installation, told) => {
      brokenNamespace = false;
      const provider = new KubernetesProvider({
        name: "lab",
        settings: kubernetesSettings.parse({}),
        cluster: {
          ...hooked,
          secrets: {
            ...hooked.secrets,
            list: (at, selector, call) =>
              brokenNamespace && at === "kube-system"
                ? Promise.reject(new Error("not to be read"))
                : hooked.secrets.list(at, selector, call),
          },
        },
        scope: {
          installation,
          namespaces: [namespace, "kube-system"],
          onUnreadable: (...said) => void told.logs.push(said),
        },
      });
      return withMetrics(withDeadline(provider), (call) => void told.calls.push(call));
    },
    owner: () => createProxy(connection),
    hook: (hook) => hooks.set(hook),
    run: (request) => admin.run(request),
    halt: (request) => admin.status(request, { phase: "Failed", reason: "Evicted" }),
    confuse: (request) => admin.status(request, { phase: "Unknown" }),
    vanish: (request) => admin.remove(request),
    // A Pod on a node goes only once its agent says so.
    slowDeletion: async () => undefined,
    finishDeletion: (request) => admin.remove(request),
    foreign: (request, marks) => admin.foreign(request, marks === undefined ? {} : ownerLabels(marks)),
    everything: async (name) => [
      ...(await exists(real.pods, "Pod", name)),
      ...(await exists(real.secrets, "Secret", name)),
    ],
    breakPartOfList: () => {
      brokenNamespace = true;
    },
    malformedIDs: ["", "name-only", "a/b/c", "/name", "namespace/", "UPPER/case", "../secrets", "a/b?c"],
    stop,
  };
}

/** Calls of the provider in flight are numbered and told to the test. */
class Hooks {
  #hook: CallHook | undefined;
  #number = 0;

  set(hook: CallHook | undefined): void {
    this.#hook = hook;
    this.#number = 0;
  }

  around<T>(objects: Objects<T>): Objects<T> {
    return {
      create: (...given) => this.#call(() => objects.create(...given)),
      read: (...given) => this.#call(() => objects.read(...given)),
      delete: (...given) => this.#call(() => objects.delete(...given)),
      list: (...given) => this.#call(() => objects.list(...given)),
    };
  }

  async #call<T>(invoke: () => Promise<T>): Promise<T> {
    const number = ++this.#number;
    const hook = this.#hook;
    await hook?.({ number, when: "before" });
    const answer = await invoke();
    await hook?.({ number, when: "after" });
    return answer;
  }
}

/** What scheduler, kubelet and other people do to Pods. */
class PodAdmin {
  readonly #core: CoreV1Api;

  constructor(core: CoreV1Api) {
    this.#core = core;
  }

  async run({ name }: CreateRequest): Promise<void> {
    const target = { kind: "Node", name: "node-1" };
    await this.#core.createNamespacedPodBinding({ namespace, name, body: { metadata: { name }, target } });
    const state = { running: { startedAt: new Date() } };
    const squid = { name: "squid", image: "squid", imageID: "", ready: true, restartCount: 0, state };
    await this.status({ name }, { phase: "Running", podIP: "127.4.5.6", containerStatuses: [squid] });
  }

  async status({ name }: { name: string }, status: NonNullable<V1Pod["status"]>): Promise<void> {
    const pod = await this.#core.readNamespacedPod({ namespace, name });
    pod.status = status;
    await this.#core.replaceNamespacedPodStatus({ namespace, name, body: pod });
  }

  async remove({ name }: CreateRequest): Promise<void> {
    await this.#core.deleteNamespacedPod({ namespace, name, body: { gracePeriodSeconds: 0 } });
  }

  async foreign({ name }: CreateRequest, labels: Record<string, string>): Promise<void> {
    const spec = { containers: [{ name: "main", image: "somebody/else" }] };
    await this.#core.createNamespacedPod({ namespace, body: { metadata: { name, labels }, spec } });
  }
}

const created = z.object({ metadata: z.object({ uid: z.string(), name: z.string() }) });
let proxies = 0;

async function createProxy(
  connection: ClusterConnection,
): Promise<Pick<CreateRequest, "uid" | "namespace" | "proxyName">> {
  const custom = connection.api(CustomObjectsApi, { signal: AbortSignal.timeout(20_000) });
  const body = { apiVersion, kind: "Proxy", metadata: { name: `p${++proxies}` }, spec: { provider: "lab" } };
  const answer: unknown = await custom.createNamespacedCustomObject({
    group,
    version,
    namespace,
    plural: "proxies",
    body,
  });
  const { metadata } = created.parse(answer);
  return { uid: metadata.uid, namespace, proxyName: metadata.name };
}

async function exists<T>(objects: Objects<T>, kind: string, name: string): Promise<string[]> {
  try {
    await objects.read(namespace, name, { signal: AbortSignal.timeout(20_000) });
    return [`${kind} ${name}`];
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}
