import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { CoreV1Api, type CoreV1Event, PatchStrategy, setHeaderOptions } from "@kubernetes/client-node";
import { toFailure } from "#shared/errors/failure.ts";
import { apiVersion, group } from "#shared/model/names.ts";
import type { Proxy } from "#shared/model/proxy.ts";
import type { ClusterConnection } from "./connection.ts";

export interface ProxyEvent {
  regarding: Pick<Proxy, "metadata">;
  type: "Normal" | "Warning";
  /** CamelCase, one word. */
  reason: string;
  message: string;
}

export interface EventRecorderDeps {
  connection: ClusterConnection;
  log: { debug(fields: object, message: string): void };
  now?: () => Date;
}

/** What kubectl and other tools expect at most. */
const longestNote = 1024;
const mostWaiting = 1_000;
const mostRemembered = 1_000;
/** Repeats are counted in the event that is there, if that is not older than this. */
const seriesMs = 360_000;
/** Repeats of one event are written no more often than this. */
const seriesWriteMs = 10_000;
const deadlineMs = 5_000;

interface Written {
  namespace: string;
  name: string;
  count: number;
  lastSeen: number;
  lastWritten: number;
}

/**
 * Tells people what happened to a Proxy (`kubectl describe`). Written as core/v1 Events with a count, which every tool shows;
 * events.k8s.io/v1 is the same objects by another name, and more to serve for a small API server. Never throws and never delays a run: events wait in a
 * bounded queue, and one that cannot be written is dropped.
 */
export class EventRecorder {
  readonly #deps: EventRecorderDeps;
  readonly #now: () => Date;
  readonly #waiting: ProxyEvent[] = [];
  readonly #written = new Map<string, Written>();
  readonly #stop = new AbortController();
  #writing: Promise<void> | undefined;
  dropped = 0;

  constructor(deps: EventRecorderDeps) {
    this.#deps = deps;
    this.#now = deps.now ?? (() => new Date());
  }

  record(event: ProxyEvent): void {
    if (this.#stop.signal.aborted || this.#waiting.length >= mostWaiting) {
      this.dropped += 1;
      return;
    }
    this.#waiting.push(event);
    this.#writing ??= this.#writeAll();
  }

  /** Writes what waits, for a bounded time; later events are dropped. */
  async close(): Promise<void> {
    const limit = setTimeout(() => this.#stop.abort(new Error("the event recorder stops")), deadlineMs);
    await this.#writing;
    clearTimeout(limit);
    this.#stop.abort(new Error("the event recorder stops"));
  }

  async #writeAll(): Promise<void> {
    for (let event = this.#waiting.shift(); event !== undefined; event = this.#waiting.shift()) {
      try {
        await this.#write(event);
      } catch (error) {
        this.dropped += 1;
        this.#deps.log.debug({ reason: toFailure(error).message, event: event.reason }, "an event was dropped");
      }
    }
    this.#writing = undefined;
  }

  async #write(event: ProxyEvent): Promise<void> {
    const { metadata } = event.regarding;
    const id = [metadata.uid, event.type, event.reason, event.message].join("\n");
    const now = this.#now();
    const before = this.#written.get(id);
    if (before === undefined || now.getTime() - before.lastSeen > seriesMs) {
      const created = await this.#api().createNamespacedEvent({
        namespace: metadata.namespace,
        body: describe(event, now),
      });
      this.#remember(id, { namespace: metadata.namespace, name: created.metadata?.name ?? "" }, now);
      return;
    }
    before.count += 1;
    before.lastSeen = now.getTime();
    if (now.getTime() - before.lastWritten < seriesWriteMs) return;
    before.lastWritten = now.getTime();
    const { namespace, name, count } = before;
    const body = { count, lastTimestamp: now.toISOString() };
    await this.#api().patchNamespacedEvent(
      { namespace, name, body },
      setHeaderOptions("Content-Type", PatchStrategy.MergePatch),
    );
  }

  #remember(id: string, at: { namespace: string; name: string }, now: Date): void {
    const [oldest] = this.#written.keys();
    if (this.#written.size >= mostRemembered && oldest !== undefined) this.#written.delete(oldest);
    this.#written.set(id, { ...at, count: 1, lastSeen: now.getTime(), lastWritten: now.getTime() });
  }

  #api(): CoreV1Api {
    return this.#deps.connection.api(CoreV1Api, { signal: this.#stop.signal, deadlineMs });
  }
}

function describe({ regarding, type, reason, message }: ProxyEvent, now: Date): CoreV1Event {
  const { name, namespace, uid } = regarding.metadata;
  return {
    metadata: { name: `${name.slice(0, 200)}.${randomBytes(8).toString("hex")}`, namespace },
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
    type,
    reason,
    message: message.length <= longestNote ? message : `${message.slice(0, longestNote - 1)}…`,
    involvedObject: { apiVersion, kind: "Proxy", name, namespace, uid },
    source: { component: "egress-proxies" },
    reportingComponent: `${group}/egress-proxies`,
    reportingInstance: hostname().slice(0, 128) || "egress-proxies",
  };
}
