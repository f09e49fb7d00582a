import { setTimeout as sleep } from "node:timers/promises";
import { isNotFound, toFailure } from "#shared/errors/failure.ts";
import type { Logger } from "#shared/telemetry/logger.ts";
import type { BoundProcess } from "../bound-process.ts";
import type { AgentCluster } from "./agent-cluster.ts";
import { type AgentContainer, type AgentPod, podKey } from "./agent-pod.ts";
import { PodFiles, type PodUser, removeSharedMemory, type SecretFiles } from "./pod-files.ts";
import { type ContainerState, podStatus, timestamp } from "./pod-status.ts";
import { serviceNameOf } from "./squid-command.ts";
import { accepts, startSquid } from "./squid-run.ts";
import { untilDone } from "./until-done.ts";

export interface PodLifeDeps {
  pod: AgentPod;
  container: AgentContainer;
  /** The loopback address that is the Pod's alone. */
  address: string;
  cluster: AgentCluster;
  nodeName: string;
  runtimeFolder: string;
  /** Undefined: as whom the agent runs. */
  user: PodUser | undefined;
  log: Logger;
  now: () => Date;
}

type End = { code: number; reason: string };

const longestRestartPauseMs = 60_000;

/** One Pod on this node, from its binding to its end. */
export class PodLife {
  readonly #deps: PodLifeDeps;
  readonly #files: PodFiles;
  readonly #ending = new AbortController();
  readonly #startTime: string;
  readonly #lived: Promise<void>;
  #pod: AgentPod;
  #squid: BoundProcess | undefined;
  #restartCount = 0;
  #ready = { is: false, since: "" };

  /** Begins at once. */
  constructor(deps: PodLifeDeps) {
    const { pod, runtimeFolder, user, now } = deps;
    this.#deps = deps;
    this.#pod = pod;
    this.#files = new PodFiles({ runtimeFolder, uid: pod.metadata.uid, user });
    this.#startTime = pod.status.startTime ?? timestamp(now());
    this.#ready.since = timestamp(now());
    this.#lived = this.#live();
  }

  get address(): string {
    return this.#deps.address;
  }

  get isEnding(): boolean {
    return this.#ending.signal.aborted;
  }

  /** The Pod as the API has it now. */
  observe(pod: AgentPod): void {
    this.#pod = pod;
  }

  /** Ends the Squid, by force after `graceMs`, and removes all that it leaves on this machine. */
  async end(graceMs: number): Promise<void> {
    this.#ending.abort();
    await this.#squid?.stop(graceMs);
    await this.#lived;
    await this.#cleanUp();
  }

  async #live(): Promise<void> {
    const { log } = this.#deps;
    try {
      await this.#bind();
      await this.#runToTheEnd();
    } catch (error) {
      if (this.isEnding) return;
      // Deleted by somebody meanwhile: the agent is told, and ends us.
      if (isNotFound(error)) return;
      log.error({ err: error, pod: podKey(this.#pod) }, "the node agent gave up on a pod");
    }
  }

  async #bind(): Promise<void> {
    const { cluster, nodeName } = this.#deps;
    // Looked at again before every attempt: the answer to an earlier one may have been lost.
    await this.#persist("bind", async (signal) => {
      if (this.#pod.spec.nodeName === undefined) await cluster.bind(this.#pod, nodeName, signal);
    });
  }

  async #runToTheEnd(): Promise<void> {
    const { log, now } = this.#deps;
    const { restartPolicy } = this.#pod.spec;
    for (let pauseMs = 1_000; ; pauseMs = Math.min(pauseMs * 2, longestRestartPauseMs)) {
      const startedAt = timestamp(now());
      const end = await this.#runOnce(startedAt);
      this.#squid = undefined;
      this.#ending.signal.throwIfAborted();
      log.warn({ pod: podKey(this.#pod), code: end.code }, `pod ended: ${end.reason}`);
      const restarts = restartPolicy === "Always" || (restartPolicy === "OnFailure" && end.code !== 0);
      const ended = { startedAt, endedAt: timestamp(now()), exitCode: end.code, message: end.reason };
      await this.#cleanUp();
      await this.#report({ kind: "ended", ...ended }, restarts);
      if (!restarts) return;
      await sleep(pauseMs, undefined, { signal: this.#ending.signal });
      this.#restartCount += 1;
    }
  }

  /** How the Squid ended; also when it could not even be started. */
  async #runOnce(startedAt: string): Promise<End> {
    const { container, address, user, log } = this.#deps;
    const secrets = await this.#readSecrets();
    const [pod, files] = [this.#pod, this.#files];
    try {
      this.#squid = await startSquid({ pod, container, address, secrets, files, user });
    } catch (error) {
      return { code: 128, reason: toFailure(error).message };
    }
    const squid = this.#squid;
    if (this.isEnding) await squid.stop(0);
    await this.#report({ kind: "running", startedAt, ready: false });
    if (await this.#becomesReady(squid)) {
      await this.#report({ kind: "running", startedAt, ready: true });
      log.info({ pod: podKey(pod), address, pid: squid.pid }, "pod is running");
    }
    return squid.ended;
  }

  async #becomesReady(squid: BoundProcess): Promise<boolean> {
    const { address, container } = this.#deps;
    const waiting = new AbortController();
    const signal = AbortSignal.any([waiting.signal, this.#ending.signal]);
    const ready = accepts(address, container.ports[0]?.containerPort ?? 3128, signal);
    try {
      return await Promise.race([ready.then(() => true), squid.ended.then(() => false)]);
    } finally {
      waiting.abort();
      await ready.catch(() => undefined); // given up: nobody needs it any more
    }
  }

  async #readSecrets(): Promise<ReadonlyMap<string, SecretFiles>> {
    const { cluster } = this.#deps;
    const names = this.#pod.spec.volumes.flatMap(({ secret }) => (secret === undefined ? [] : [secret.secretName]));
    const secrets = new Map<string, SecretFiles>();
    for (const name of names) {
      const files = await this.#persist(`read secret ${name}`, async (signal) => {
        try {
          return await cluster.readSecret(this.#pod.metadata.namespace, name, signal);
        } catch (error) {
          if (!isNotFound(error)) throw error;
          // Unlike a Pod that is gone, a Secret may still come.
          const message = `MountVolume failed: secret "${name}" not found`;
          await this.#report({ kind: "waiting", reason: "ContainerCreating", message });
          throw new Error(message, { cause: error });
        }
      });
      secrets.set(name, files);
    }
    return secrets;
  }

  async #report(state: ContainerState, restarts = true): Promise<void> {
    const { container, address, cluster, now } = this.#deps;
    const ready = state.kind === "running" && state.ready;
    if (ready !== this.#ready.is) this.#ready = { is: ready, since: timestamp(now()) };
    const [startTime, readyChangedAt, restartCount] = [this.#startTime, this.#ready.since, this.#restartCount];
    const status = podStatus({ container, address, startTime, readyChangedAt, restartCount, state, restarts });
    await this.#persist("write status", (signal) => cluster.writeStatus(this.#pod, status, signal));
  }

  #persist<T>(what: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { signal } = this.#ending;
    const onFailure = (error: unknown): void => {
      this.#deps.log.warn({ err: error, pod: podKey(this.#pod) }, `${what} failed, will be repeated`);
    };
    return untilDone(() => work(signal), { signal, onFailure });
  }

  async #cleanUp(): Promise<void> {
    await removeSharedMemory(serviceNameOf(this.#pod.metadata.uid));
    await this.#files.remove();
  }
}
