import { ApiError, invalidValue } from "./api-error.ts";
import type { ApiState } from "./api-state.ts";
import { matcherFor } from "./list.ts";
import type { Representation } from "./representation.ts";
import type { Query, Target } from "./request.ts";
import type { Change } from "./store.ts";
import type { StoredObject } from "./stored-object.ts";

/** Where the events of a watch go, one line each. `end` is called at most once, by the watch. */
export interface WatchSink {
  write(line: string): void;
  end(): void;
}

const defaultTimeoutSeconds = 1800;

/** Refuses what the real server refuses; must be called before the answer starts. */
export function checkWatch(query: Query): void {
  if (query.sendInitialEvents === undefined || query.resourceVersionMatch === "NotOlderThan") return;
  const cause = invalidValue("resourceVersionMatch", query.resourceVersionMatch ?? "", "must be NotOlderThan");
  throw new ApiError(422, "Invalid", `ListOptions is invalid: ${cause.field}: ${cause.message}`, { causes: [cause] });
}

/**
 * Starts a watch: first what the client has not seen yet (or everything, when it names no version or asks for it), then
 * every change, until its timeout. A version that is too old gets an ERROR event with code 410. Returns how to end it.
 */
export function startWatch(
  api: ApiState,
  target: Target,
  query: Query,
  representation: Representation,
  sink: WatchSink,
  bookmarkSeconds: number,
): () => void {
  const stream = new EventStream(representation, sink);
  const matches = matcherFor(target, query);
  const { storeKey } = target.kind;
  const tell = (change: Change): void => {
    if (change.storeKey === storeKey) stream.change(change, matches);
  };
  const from = query.resourceVersion;
  if (query.sendInitialEvents === true || from === undefined || from === "" || from === "0") {
    for (const object of api.store.list(storeKey)) if (matches(object)) stream.object("ADDED", object);
    if (query.sendInitialEvents === true) stream.bookmark(api.store.version, { "k8s.io/initial-events-end": "true" });
  } else {
    try {
      for (const change of api.store.since(Number(from))) tell(change);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      stream.error(error);
      sink.end();
      return () => undefined;
    }
  }
  const unsubscribe = api.store.subscribe(tell);
  const bookmarks = setInterval(() => {
    if (query.allowWatchBookmarks) stream.bookmark(api.store.version);
  }, bookmarkSeconds * 1000);
  const stop = (): void => {
    unsubscribe();
    clearInterval(bookmarks);
    clearTimeout(timeout);
  };
  const timeout = setTimeout(
    () => {
      stop();
      sink.end();
    },
    (query.timeoutSeconds ?? defaultTimeoutSeconds) * 1000,
  );
  return stop;
}

class EventStream {
  readonly #representation: Representation;
  readonly #sink: WatchSink;
  #first = true;

  constructor(representation: Representation, sink: WatchSink) {
    this.#representation = representation;
    this.#sink = sink;
  }

  /** An object that starts or stops matching appears or disappears, for this watch. */
  change({ type, object, previous, version }: Change, matches: (object: StoredObject) => boolean): void {
    const now = type !== "DELETED" && matches(object);
    const before = previous !== undefined && matches(previous);
    if (now) this.object(before ? "MODIFIED" : "ADDED", object);
    else if (before && type === "DELETED") this.object("DELETED", object);
    else if (before)
      this.object("DELETED", { ...previous, metadata: { ...previous.metadata, resourceVersion: `${version}` } });
  }

  object(type: string, object: StoredObject): void {
    this.#write(type, this.#representation.watched(object, this.#first));
  }

  bookmark(version: number, annotations?: Record<string, string>): void {
    const metadata = { resourceVersion: `${version}`, creationTimestamp: null, ...(annotations && { annotations }) };
    this.#write("BOOKMARK", this.#representation.bookmark(metadata, this.#first));
  }

  error(error: ApiError): void {
    this.#write("ERROR", error.toStatus());
  }

  #write(type: string, object: object): void {
    this.#first = false;
    this.#sink.write(`${JSON.stringify({ type, object })}\n`);
  }
}
