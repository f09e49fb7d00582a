import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Proxy } from "#shared/model/proxy.ts";

const connectMs = 3_000;
const pauseMs = 1_000;

/** Tells a person which Pods this machine cannot reach: their probes, and all who lease them here, fail. */
export class PodReach {
  readonly #say: (line: string) => void;
  readonly #graceMs: number;
  readonly #stop = new AbortController();
  readonly #looked = new Map<string, Promise<void>>();

  /** `graceMs`: how long a Pod that has just started may refuse connections. */
  constructor({ say, graceMs = 10_000 }: { say: (line: string) => void; graceMs?: number }) {
    [this.#say, this.#graceMs] = [say, graceMs];
  }

  /** Looks, once, at each address that a Proxy has while it is not Ready. Returns at once. */
  look(proxies: readonly Proxy[]): void {
    for (const { metadata, status } of proxies) {
      if (status.endpoint === undefined || status.phase === "Ready") continue;
      const { host, port } = status.endpoint;
      const target = `${metadata.name} at ${host}:${port}`;
      if (!this.#looked.has(target)) this.#looked.set(target, this.#try(target, host, port));
    }
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#looked.values());
  }

  async #try(target: string, host: string, port: number): Promise<void> {
    const { signal } = this.#stop;
    const begun = performance.now();
    for (;;) {
      const problem = await problemOf(host, port, signal);
      if (problem === undefined || signal.aborted) return;
      if (performance.now() - begun > this.#graceMs) {
        this.#say(
          `proxy/${target}: this machine cannot reach it (${problem}), so it does not become Ready. Start this on a Node, or route the cluster's Pod network here (ip route add POD_NETWORK via NODE_ADDRESS).`,
        );
        return;
      }
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined); // looked at above
    }
  }
}

/** Undefined: it accepts connections. */
async function problemOf(host: string, port: number, signal: AbortSignal): Promise<string | undefined> {
  const socket = connect({ host, port });
  const limit = AbortSignal.any([signal, AbortSignal.timeout(connectMs)]);
  try {
    await once(socket, "connect", { signal: limit });
    return undefined;
  } catch (error) {
    if (limit.aborted) return `no answer within ${connectMs / 1000} s`;
    return error instanceof Error && "code" in error ? String(error.code) : String(error);
  } finally {
    socket.destroy();
  }
}
