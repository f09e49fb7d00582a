import { z } from "zod";
import { Failure, toFailure } from "#shared/errors/failure.ts";

/** What happened to an object; `key` is `<namespace>/<name>`. A name with another uid is a `gone` and then a `set`. */
export type Change = { kind: "set"; key: string; object: unknown } | { kind: "gone"; key: string; uid: string };

interface Seen {
  uid: string;
  version: string;
  /** The handler has accepted it; otherwise the next list tells it again. */
  taken: boolean;
}

const meta = z.object({
  metadata: z.object({
    namespace: z.string().default(""),
    name: z.string(),
    uid: z.string(),
    resourceVersion: z.string(),
  }),
});

/** Remembers uid and version of each object, no more, and tells a handler what is new, one change after another. */
export class WatchedObjects {
  readonly #onChange: (change: Change) => void | Promise<void>;
  readonly #signal: AbortSignal;
  readonly #known = new Map<string, Seen>();
  #refused: { count: number; first: unknown } | undefined;

  constructor(deps: { onChange: (change: Change) => void | Promise<void>; signal: AbortSignal }) {
    this.#onChange = deps.onChange;
    this.#signal = deps.signal;
  }

  get size(): number {
    return this.#known.size;
  }

  keys(): string[] {
    return [...this.#known.keys()];
  }

  /** Tells whether the version is news, whatever the handler made of it. */
  async set(object: unknown): Promise<{ key: string; version: string; news: boolean }> {
    const { key, uid, version } = identify(object);
    const before = this.#known.get(key);
    const news = before?.uid !== uid || before.version !== version;
    if (!news && before.taken) return { key, version, news };
    const replaced = before !== undefined && before.uid !== uid;
    if (replaced && !(await this.gone(key))) return { key, version, news };
    this.#known.set(key, { uid, version, taken: await this.#tell({ kind: "set", key, object }) });
    return { key, version, news };
  }

  /** From a watch. The end of an object that we have already seen replaced is old news. */
  async deleted(object: unknown): Promise<void> {
    const { key, uid } = identify(object);
    if (this.#known.get(key)?.uid === uid) await this.gone(key);
  }

  /** Tells whether it is forgotten; not when the handler refused, so that the next list finds it again. */
  async gone(key: string): Promise<boolean> {
    const before = this.#known.get(key);
    if (before === undefined) return true;
    const taken = await this.#tell({ kind: "gone", key, uid: before.uid });
    if (taken) this.#known.delete(key);
    return taken;
  }

  /** What the handler refused since the last time this was asked. */
  takeRefusal(): Failure | undefined {
    if (this.#refused === undefined) return undefined;
    const { count, first } = this.#refused;
    this.#refused = undefined;
    const message = `${count} changes could not be handed on and are told again; the first: ${toFailure(first).message}`;
    return new Failure({ class: "Transient", code: "HandlerFailed", op: "watch", message, cause: first });
  }

  /** A handler that fails must not hold up the other objects. Throws only when the watch is to end. */
  async #tell(change: Change): Promise<boolean> {
    try {
      await untilAborted(async () => this.#onChange(change), this.#signal);
      return true;
    } catch (error) {
      this.#signal.throwIfAborted();
      this.#refused ??= { count: 0, first: error };
      this.#refused.count += 1;
      return false;
    }
  }
}

function identify(object: unknown): { key: string; uid: string; version: string } {
  const parsed = meta.safeParse(object);
  if (!parsed.success) {
    const message = "the API server sent an object without name, uid or resourceVersion";
    throw new Failure({ class: "Transient", code: "UnexpectedAnswer", op: "watch", message });
  }
  const { namespace, name, uid, resourceVersion } = parsed.data.metadata;
  return { key: namespace === "" ? name : `${namespace}/${name}`, uid, version: resourceVersion };
}

/** A handler may wait for as long as Redis is away; the end of the watch does not wait for it. */
async function untilAborted(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(new Error("the watch ends", { cause: signal.reason }));
  signal.throwIfAborted();
  signal.addEventListener("abort", abort);
  try {
    await Promise.race([work(), aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
