import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { Failure, toFailure } from "#shared/errors/failure.ts";
import type { ClusterConnection } from "./connection.ts";
import { listPages } from "./pages.ts";
import { watchMessages } from "./watch-stream.ts";

/** What happened to an object. `missed`: a list found it although a watch should have told. */
export type Change = { kind: "set"; key: string; object: unknown } | { kind: "gone"; key: string };

export interface WatchTiming {
  /** A watch without a byte for so long is dead; the server sends a bookmark about every minute. */
  idleMs: number;
  /** Everything is listed anew after so long, whatever the watch says. */
  relistMs: number;
  /** The server ends a watch after this to twice this. */
  watchSeconds: number;
  firstBackoffMs: number;
  lastBackoffMs: number;
}

const defaultTiming: WatchTiming = {
  idleMs: 150_000,
  relistMs: 600_000,
  watchSeconds: 240,
  firstBackoffMs: 500,
  lastBackoffMs: 30_000,
};

export interface WatchOptions {
  connection: ClusterConnection;
  path: string;
  labelSelector?: string;
  /**
   * Called for one change after another. When it rejects, the watch ends, and after a backoff everything is listed: the
   * same change comes again. A name with another uid is a `gone` and a `set`.
   */
  onChange: (change: Change) => void | Promise<void>;
  /** After each complete list; `missed`: how many changes no watch had told of (0 for the first list). */
  onListed: (list: { count: number; missed: number }) => void;
  /** A list or watch failed and is tried again. */
  onFailure: (failure: Failure) => void;
  signal: AbortSignal;
  random?: () => number;
  timing?: Partial<WatchTiming>;
}

const meta = z.object({
  metadata: z.object({
    namespace: z.string().default(""),
    name: z.string(),
    uid: z.string(),
    resourceVersion: z.string(),
  }),
});
const bookmark = z.object({ metadata: z.object({ resourceVersion: z.string() }) });

/**
 * Lists and watches one path until the signal fires; resolves then, and never rejects. Keeps only uid and version of each
 * object. The client library's own informer stops for good on some errors and swallows those of its callbacks.
 */
export async function watchResource(options: WatchOptions): Promise<void> {
  await new ResourceWatch(options).run();
}

class ResourceWatch {
  readonly #options: WatchOptions;
  readonly #timing: WatchTiming;
  readonly #random: () => number;
  readonly #known = new Map<string, { uid: string; version: string }>();
  #version: string | undefined;
  #listedAt = Number.NEGATIVE_INFINITY;
  #hasListed = false;
  #backoffMs = 0;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#timing = { ...defaultTiming, ...options.timing };
    this.#random = options.random ?? Math.random;
  }

  async run(): Promise<void> {
    const { signal, onFailure } = this.#options;
    while (!signal.aborted) {
      try {
        const stale = performance.now() - this.#listedAt > this.#timing.relistMs;
        if (this.#version === undefined || stale) await this.#list();
        await this.#watch();
      } catch (error) {
        if (signal.aborted) return;
        const failure = toFailure(error);
        onFailure(failure);
        // What was not told, or was told and not taken, is found by a list.
        this.#version = undefined;
        await this.#pause(failure);
      }
    }
  }

  async #pause({ retryAfterMs = 0 }: Failure): Promise<void> {
    const { firstBackoffMs, lastBackoffMs } = this.#timing;
    this.#backoffMs = Math.min(lastBackoffMs, Math.max(firstBackoffMs, this.#backoffMs * 2));
    const jittered = this.#backoffMs * (0.5 + this.#random() / 2);
    await sleep(Math.max(jittered, retryAfterMs), undefined, { signal: this.#options.signal }).catch(() => undefined);
  }

  async #list(): Promise<void> {
    const { connection, path, labelSelector, signal, onListed } = this.#options;
    const seen = new Set<string>();
    let [version, missed] = ["", 0];
    for await (const page of listPages(connection, { path, labelSelector }, { signal })) {
      for (const item of page.items) {
        const { key, uid, version: its } = identify(item);
        seen.add(key);
        if (await this.#set(key, { uid, version: its }, item)) missed += 1;
      }
      version = page.resourceVersion;
    }
    for (const key of [...this.#known.keys()].filter((each) => !seen.has(each))) {
      await this.#gone(key);
      missed += 1;
    }
    this.#version = version;
    this.#listedAt = performance.now();
    onListed({ count: this.#known.size, missed: this.#hasListed ? missed : 0 });
    this.#hasListed = true;
  }

  async #watch(): Promise<void> {
    const { connection, path, labelSelector, signal } = this.#options;
    const seconds = Math.round(this.#timing.watchSeconds * (1 + this.#random()));
    const query = {
      watch: "true",
      allowWatchBookmarks: "true",
      resourceVersion: this.#version ?? "",
      timeoutSeconds: String(seconds),
      ...(labelSelector === undefined ? {} : { labelSelector }),
    };
    const idle = new IdleLimit(this.#timing.idleMs);
    try {
      const body = await connection.stream({ path, query }, { signal: AbortSignal.any([signal, idle.signal]) });
      for await (const { type, object } of watchMessages(idle.guard(body))) {
        // Only a watch that tells something has worked; one that ends at once again must not spin.
        this.#backoffMs = 0;
        await this.#take(type, object);
      }
    } finally {
      idle.end();
    }
  }

  async #take(type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK", object: unknown): Promise<void> {
    if (type === "BOOKMARK") {
      this.#version = bookmark.parse(object).metadata.resourceVersion;
      return;
    }
    const { key, uid, version } = identify(object);
    if (type === "DELETED") await this.#gone(key);
    else await this.#set(key, { uid, version }, object);
    this.#version = version;
  }

  /** Tells whether it was news. Remembered only once the handler has taken it. */
  async #set(key: string, seen: { uid: string; version: string }, object: unknown): Promise<boolean> {
    const before = this.#known.get(key);
    if (before?.uid === seen.uid && before.version === seen.version) return false;
    if (before !== undefined && before.uid !== seen.uid) await this.#gone(key);
    await this.#options.onChange({ kind: "set", key, object });
    this.#known.set(key, seen);
    return true;
  }

  async #gone(key: string): Promise<void> {
    if (!this.#known.has(key)) return;
    await this.#options.onChange({ kind: "gone", key });
    this.#known.delete(key);
  }
}

function identify(object: unknown): { key: string; uid: string; version: string } {
  const { namespace, name, uid, resourceVersion } = meta.parse(object).metadata;
  return { key: namespace === "" ? name : `${namespace}/${name}`, uid, version: resourceVersion };
}

/** Fires when nothing has arrived for a while. A consumer that takes its time is not idleness. */
class IdleLimit {
  readonly #controller = new AbortController();
  readonly #ms: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(ms: number) {
    this.#ms = ms;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  async *guard(body: AsyncIterable<unknown>): AsyncGenerator<unknown, void> {
    this.#wind();
    for await (const chunk of body) {
      this.end();
      yield chunk;
      this.#wind();
    }
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #wind(): void {
    this.end();
    const message = `the watch was silent for ${this.#ms} ms`;
    const silent = (): void =>
      this.#controller.abort(new Failure({ class: "Transient", code: "Idle", op: "watch", message }));
    this.#timer = setTimeout(silent, this.#ms);
  }
}
