import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { ClusterConnection } from "#shared/cluster/connection.ts";
import { listPages } from "#shared/cluster/pages.ts";
import { Failure } from "#shared/errors/failure.ts";
import { marks } from "#shared/model/names.ts";
import type { PodHandlers } from "./agent-cluster.ts";
import { type AgentPod, agentPod } from "./agent-pod.ts";

const path = "/api/v1/pods";
const labelSelector = `${marks.managed}=true`;
// The server ends the watch then, and the list that follows corrects whatever was missed.
const watchSeconds = 240;

const event = z.object({ type: z.enum(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]), object: z.unknown() });

/** One list, then the changes after it until the watch ends. Rejects with the API's failure, or when `signal` fires. */
export class PodFollower {
  readonly #connection: ClusterConnection;
  readonly #handlers: PodHandlers;
  readonly #onUnreadable: (error: z.ZodError) => void;
  readonly #known = new Set<string>();

  constructor(deps: {
    connection: ClusterConnection;
    handlers: PodHandlers;
    onUnreadable: (error: z.ZodError) => void;
  }) {
    this.#connection = deps.connection;
    this.#handlers = deps.handlers;
    this.#onUnreadable = deps.onUnreadable;
  }

  async listAndWatch(signal: AbortSignal): Promise<void> {
    const resourceVersion = await this.#list(signal);
    const watchSignal = AbortSignal.any([signal, AbortSignal.timeout((watchSeconds + 30) * 1000)]);
    const query = { watch: "true", labelSelector, resourceVersion, timeoutSeconds: `${watchSeconds}` };
    const body = await this.#connection.stream({ path, query }, { signal: watchSignal });
    for await (const line of lines(body)) this.#take(event.parse(JSON.parse(line)));
  }

  async #list(signal: AbortSignal): Promise<string> {
    const seen = new Set<string>();
    let resourceVersion = "";
    for await (const page of listPages(this.#connection, { path, labelSelector }, { signal })) {
      for (const item of page.items) {
        const pod = this.#parse(item);
        if (pod === undefined) continue;
        seen.add(pod.metadata.uid);
        this.#changed(pod);
      }
      ({ resourceVersion } = page);
    }
    for (const uid of this.#known.difference(seen)) this.#gone(uid);
    return resourceVersion;
  }

  #take({ type, object }: z.infer<typeof event>): void {
    if (type === "BOOKMARK") return;
    if (type === "ERROR") throw watchFailed(object);
    const pod = this.#parse(object);
    if (pod === undefined) return;
    if (type === "DELETED") this.#gone(pod.metadata.uid);
    else this.#changed(pod);
  }

  #changed(pod: AgentPod): void {
    this.#known.add(pod.metadata.uid);
    this.#handlers.changed(pod);
  }

  #gone(uid: string): void {
    this.#known.delete(uid);
    this.#handlers.gone(uid);
  }

  #parse(item: unknown): AgentPod | undefined {
    const parsed = agentPod.safeParse(item);
    if (!parsed.success) this.#onUnreadable(parsed.error);
    return parsed.data;
  }
}

/** Follows for good: whatever ends the watch, a new list comes soon. Resolves when `signal` fires. */
export async function followForGood(
  follower: PodFollower,
  options: { signal: AbortSignal; onFailure: (error: unknown) => void },
): Promise<void> {
  const { signal, onFailure } = options;
  while (!signal.aborted) {
    try {
      await follower.listAndWatch(signal);
    } catch (error) {
      if (signal.aborted) return;
      onFailure(error);
      await sleep(500 + Math.random() * 500, undefined, { signal }).catch(() => undefined); // the loop looks at it
    }
  }
}

function watchFailed(object: unknown): Failure {
  const said = z.object({ message: z.string() }).safeParse(object).data?.message ?? "no reason given";
  return new Failure({ class: "Transient", code: "WatchFailed", message: `watch of pods: ${said}` });
}

async function* lines(body: AsyncIterable<unknown>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    if (chunk instanceof Uint8Array) rest += decoder.decode(chunk, { stream: true });
    const whole = rest.split("\n");
    rest = whole.pop() ?? "";
    yield* whole.filter((line) => line !== "");
  }
}
