import { rm } from "node:fs/promises";
import type { Logger } from "#shared/telemetry/logger.ts";
import type { AgentCluster } from "./agent-cluster.ts";
import { type AgentPod, isOver, podKey } from "./agent-pod.ts";
import { endEarlierLife } from "./earlier-life.ts";
import { listeningAddresses } from "./listening.ts";
import { chooseAddress } from "./loopback-address.ts";
import type { PodUser } from "./pod-files.ts";
import { PodLife } from "./pod-life.ts";
import { makeRuntimeFolder } from "./runtime-folder.ts";
import { untilDone } from "./until-done.ts";

export interface NodeAgentOptions {
  cluster: AgentCluster;
  /** The data folder of this installation: two of them on one machine never touch each other's Squids. */
  dir: string;
  nodeName?: string;
  log: Logger;
  now?: () => Date;
}

// User `proxy` of Debian's and Ubuntu's Squid packages: for Pods that name no user.
const squidUser = 13;

/** Runs the marked Pods that no other node has as Squid processes of this machine, one loopback address each. */
export class NodeAgent {
  readonly #options: NodeAgentOptions;
  readonly #nodeName: string;
  readonly #runtimeFolder: string;
  readonly #lives = new Map<string, PodLife>();
  readonly #stopping = new AbortController();
  readonly #following: Promise<void>;
  readonly #endings = new Set<Promise<void>>();

  private constructor(options: NodeAgentOptions, runtimeFolder: string) {
    this.#options = options;
    this.#nodeName = options.nodeName ?? "egress-proxies-local";
    this.#runtimeFolder = runtimeFolder;
    const handlers = { changed: this.#changed.bind(this), gone: this.#gone.bind(this) };
    this.#following = options.cluster.follow(handlers, this.#stopping.signal);
  }

  /** Ends what an earlier agent of the same `dir` left behind, then follows the Pods. */
  static async start(options: NodeAgentOptions): Promise<NodeAgent> {
    const runtimeFolder = await makeRuntimeFolder(options.dir);
    await endEarlierLife(runtimeFolder);
    return new NodeAgent(options, runtimeFolder);
  }

  /** Ends all Squids at once. The Pods stay in the API: the next agent starts them again. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#following;
    await Promise.all([...this.#lives.values()].map((life) => life.end(0)));
    await Promise.all(this.#endings);
    await rm(this.#runtimeFolder, { recursive: true, force: true });
  }

  #changed(pod: AgentPod): void {
    const life = this.#lives.get(pod.metadata.uid);
    const elsewhere = pod.spec.nodeName !== undefined && pod.spec.nodeName !== this.#nodeName;
    if (elsewhere) this.#gone(pod.metadata.uid);
    else if (pod.metadata.deletionTimestamp !== undefined) this.#end(pod, life);
    else if (life !== undefined) life.observe(pod);
    else if (!isOver(pod)) this.#begin(pod);
  }

  #begin(pod: AgentPod): void {
    const [container] = pod.spec.containers;
    if (container === undefined) return;
    const { cluster, log, now = () => new Date() } = this.#options;
    // Another installation's Pods live in the same addresses.
    const taken = listeningAddresses();
    for (const life of this.#lives.values()) taken.add(life.address);
    const address = chooseAddress(pod.metadata.uid, pod.status.podIP, taken);
    const [nodeName, runtimeFolder, user] = [this.#nodeName, this.#runtimeFolder, userOf(pod)];
    log.debug({ pod: podKey(pod), address }, "pod begins");
    const life = new PodLife({ pod, container, address, cluster, nodeName, runtimeFolder, user, log, now });
    this.#lives.set(pod.metadata.uid, life);
  }

  #gone(uid: string): void {
    const life = this.#lives.get(uid);
    if (life === undefined || life.isEnding) return;
    this.#track(
      life.end(0).then(() => {
        this.#lives.delete(uid);
      }),
    );
  }

  /** Ends the Pod's Squid within the time that the deletion grants, then lets the API forget the Pod. */
  #end(pod: AgentPod, life: PodLife | undefined): void {
    if (life?.isEnding === true) return;
    const { cluster, log } = this.#options;
    const { uid, deletionGracePeriodSeconds = 30 } = pod.metadata;
    const { signal } = this.#stopping;
    const onFailure = (error: unknown): void =>
      log.warn({ err: error, pod: podKey(pod) }, "delete pod failed, will be repeated");
    const ending = async (): Promise<void> => {
      await life?.end(deletionGracePeriodSeconds * 1000);
      log.info({ pod: podKey(pod) }, "pod is ended");
      await untilDone(() => cluster.remove(pod, signal), { signal, onFailure });
    };
    this.#track(
      ending().then(() => {
        this.#lives.delete(uid);
      }),
    );
  }

  /** Keeps the promise, so that `stop` can wait for it, and looks at its end. */
  #track(ending: Promise<void>): void {
    const looked = ending
      .catch((error: unknown) => {
        if (!this.#stopping.signal.aborted) this.#options.log.warn({ err: error }, "ending a pod failed");
      })
      .finally(() => this.#endings.delete(looked));
    this.#endings.add(looked);
  }
}

/** Only root can be somebody else, and Squid must not stay root. */
function userOf({ spec }: AgentPod): PodUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const { runAsUser = squidUser, runAsGroup = runAsUser } = spec.securityContext;
  return { uid: runAsUser === 0 ? squidUser : runAsUser, gid: runAsGroup === 0 ? squidUser : runAsGroup };
}
