import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "#shared/errors/failure.ts";
import type { ClusterConnection } from "./connection.ts";
import { classifyApiError } from "./failure.ts";
import { listPages, metadataAccept } from "./pages.ts";
import { WatchLimit } from "./watch-limit.ts";
import { type WatchMessage, watchedVersion, watchMessages } from "./watch-stream.ts";
import { type Change, WatchedObjects } from "./watched-objects.ts";

export interface WatchTiming {
  /** A watch without a byte for so long is dead; the server sends a bookmark about every minute. */
  idleMs: number;
  /** Everything is listed anew after so long, whatever the watch says. */
  relistMs: number;
  /** The server ends a watch after this to twice this. */
  watchSeconds: number;
  /** A watch that ends sooner, and without an error, counts as failed: it must not spin. */
  shortestMs: number;
  firstBackoffMs: number;
  lastBackoffMs: number;
}

const defaultTiming: WatchTiming = {
  idleMs: 150_000,
  relistMs: 600_000,
  watchSeconds: 240,
  shortestMs: 1_000,
  firstBackoffMs: 500,
  lastBackoffMs: 30_000,
};

export interface WatchOptions {
  connection: ClusterConnection;
  path: string;
  labelSelector?: string;
  /** Objects come as PartialObjectMetadata: kind and metadata alone. */
  metadataOnly?: boolean;
  /**
   * Called for one change after another. One that it rejects is told again by a list that comes after a backoff; the
   * changes of other objects go on meanwhile. Abandoned, not awaited, when the signal fires.
   */
  onChange: (change: Change) => void | Promise<void>;
  /**
   * After each complete list; `missed`: how many changes the watch before it should have told of and did not. A deletion
   * between the end of that watch and the list counts too, though nobody missed it.
   */
  onListed: (list: { count: number; missed: number }) => void;
  /** A list or watch failed and is tried again, or (code `HandlerFailed`) changes were rejected. */
  onFailure: (failure: Failure) => void;
  signal: AbortSignal;
  random?: () => number;
  timing?: Partial<WatchTiming>;
}

/**
 * Lists and watches one path until the signal fires; resolves then, and never rejects. Never has two watches at once. The
 * client library's own informer stops for good on some errors and swallows those of its callbacks.
 */
export async function watchResource(options: WatchOptions): Promise<void> {
  await new ResourceWatch(options).run();
}

/** After so many failures in a row the version itself may be what fails, e.g. once etcd was restored. */
const failuresUntilList = 3;
const graceSeconds = 15;

class ResourceWatch {
  readonly #options: WatchOptions;
  readonly #timing: WatchTiming;
  readonly #random: () => number;
  readonly #objects: WatchedObjects;
  /** Everything up to here was told; undefined: unknown, list. */
  #version: string | undefined;
  /** The latest version that the server has shown, whatever became of the watch; undefined: none, or set back. */
  #reached: string | undefined;
  #olderLists = 0;
  #listAt = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #refusals = 0;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#timing = { ...defaultTiming, ...options.timing };
    this.#random = options.random ?? Math.random;
    this.#objects = new WatchedObjects(options);
  }

  async run(): Promise<void> {
    const { signal } = this.#options;
    while (!signal.aborted) {
      try {
        if (this.#version === undefined) await this.#list();
        else if (this.#listAt <= performance.now()) await this.#relist();
        await this.#watch();
      } catch (error) {
        if (signal.aborted) return;
        await this.#failed(this.#classified(error));
      }
    }
  }

  #classified(error: unknown): Failure {
    return classifyApiError(error, `list or watch ${this.#options.path}`, "read");
  }

  async #failed(failure: Failure): Promise<void> {
    this.#options.onFailure(failure);
    this.#failures += 1;
    const expired = failure.code === "Gone";
    if (expired || this.#failures >= failuresUntilList) this.#version = undefined;
    // An expired version is no sign of trouble, unless it happens again.
    if (expired && this.#failures === 1) return;
    const wait = Math.max(this.#backoffMs(this.#failures), failure.retryAfterMs ?? 0);
    await sleep(wait, undefined, { signal: this.#options.signal }).catch(() => undefined); // the loop looks at it
  }

  #backoffMs(nth: number): number {
    const { firstBackoffMs, lastBackoffMs } = this.#timing;
    return Math.min(lastBackoffMs, firstBackoffMs * 2 ** (nth - 1)) * (0.5 + this.#random() / 2);
  }

  /** One that fails is put off, and the watch goes on: it may work while a long list does not. */
  async #relist(): Promise<void> {
    try {
      await this.#list();
    } catch (error) {
      this.#options.signal.throwIfAborted();
      const failure = this.#classified(error);
      this.#options.onFailure(failure);
      this.#listAt = performance.now() + Math.max(this.#timing.lastBackoffMs, failure.retryAfterMs ?? 0);
    }
  }

  async #list(): Promise<void> {
    const { connection, path, labelSelector, metadataOnly, signal, onListed } = this.#options;
    const watched = this.#version !== undefined;
    const seen = new Set<string>();
    let [listed, missed] = ["", 0];
    for await (const page of listPages(connection, { path, labelSelector, metadataOnly }, { signal })) {
      this.#expectNoOlder(page.resourceVersion);
      for (const item of page.items) {
        const { key, version, news } = await this.#objects.set(item);
        seen.add(key);
        if (news && this.#reached !== undefined && !isLater(version, this.#reached)) missed += 1;
      }
      listed = page.resourceVersion;
    }
    for (const key of this.#objects.keys()) {
      if (seen.has(key)) continue;
      await this.#objects.gone(key);
      if (watched) missed += 1;
    }
    this.#version = this.#reached = listed;
    this.#olderLists = 0;
    this.#listAt = performance.now() + this.#timing.relistMs;
    if (!this.#tellRefusal()) this.#refusals = 0;
    onListed({ count: this.#objects.size, missed });
  }

  /**
   * Throws for a list from before what was told, e.g. of a server that lags behind: objects would seem to vanish. A server
   * that insists has been set back (etcd was restored), and is believed.
   */
  #expectNoOlder(listed: string): void {
    if (this.#reached === undefined || !isLater(this.#reached, listed)) return;
    this.#olderLists += 1;
    if (this.#olderLists < failuresUntilList) throw failure("StaleList", "the list is older than what was told before");
    this.#reached = undefined;
  }

  /** Brings the next list forward when the handler has rejected something. */
  #tellRefusal(): boolean {
    const refusal = this.#objects.takeRefusal();
    if (refusal === undefined) return false;
    this.#options.onFailure(refusal);
    this.#refusals += 1;
    this.#listAt = Math.min(this.#listAt, performance.now() + this.#backoffMs(this.#refusals));
    return true;
  }

  async #watch(): Promise<void> {
    const { connection, path, metadataOnly = false, signal } = this.#options;
    const accept = metadataOnly ? { accept: metadataAccept("PartialObjectMetadata") } : {};
    const seconds = Math.ceil(this.#timing.watchSeconds * (1 + this.#random()));
    const limit = new WatchLimit(this.#timing.idleMs);
    limit.endIn((seconds + graceSeconds) * 1000);
    limit.endIn(this.#listAt - performance.now());
    try {
      const call = { signal: AbortSignal.any([signal, limit.signal]) };
      const body = await connection.stream({ path, query: this.#query(seconds), ...accept }, call);
      for await (const message of watchMessages(limit.guard(body))) {
        // Only a watch that tells something has worked.
        this.#failures = 0;
        await this.#take(message);
        if (this.#tellRefusal()) limit.endIn(this.#listAt - performance.now());
      }
    } catch (error) {
      if (limit.reached === "end") return;
      throw limit.reached === "idle" ? failure("Idle", "the watch was silent for too long") : error;
    } finally {
      limit.release();
    }
    if (limit.ageMs < this.#timing.shortestMs) throw failure("WatchEnded", "the server ended the watch at once");
  }

  #query(seconds: number): Record<string, string> {
    const { labelSelector } = this.#options;
    return {
      watch: "true",
      allowWatchBookmarks: "true",
      resourceVersion: this.#version ?? "",
      timeoutSeconds: String(seconds),
      ...(labelSelector === undefined ? {} : { labelSelector }),
    };
  }

  /** Versions only grow in a watch. After one that went back nothing is certain: the next list decides. */
  async #take({ type, object }: WatchMessage): Promise<void> {
    const version = watchedVersion(object);
    if (isLater(this.#version, version)) {
      this.#version = undefined;
      throw failure("OutOfOrder", "the watch told of an older change after a later one");
    }
    if (type === "DELETED") await this.#objects.deleted(object);
    else if (type !== "BOOKMARK") await this.#objects.set(object);
    this.#version = this.#reached = version;
  }
}

/** Versions grow, and compare as whole numbers (documented since Kubernetes 1.35, true before). */
function isLater(version: string | undefined, than: string): boolean {
  if (version === undefined) return false;
  return /^\d+$/.test(version) && /^\d+$/.test(than) && BigInt(version) > BigInt(than);
}

function failure(code: string, message: string): Failure {
  return new Failure({ class: "Transient", code, op: "watch", message });
}
