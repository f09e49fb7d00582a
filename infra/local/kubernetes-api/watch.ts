import { ApiError, unprocessable } from "../kubernetes-objects/api-error.ts";
import type { KubeObject } from "../kubernetes-objects/kube-object.ts";
import type { Representation } from "./representation.ts";
import { matcherFor, numberIn, type Target } from "./request.ts";
import type { Change, Store } from "./store.ts";

/** Where the events go, one line each. */
export interface WatchSink {
  write(line: string): void;
  end(): void;
}

export interface WatchRequest {
  target: Target;
  query: URLSearchParams;
  representation: Representation;
  bookmarkSeconds: number;
}

/**
 * Prepares a watch and throws what it is to be refused with. The function it returns starts it: first what the client has
 * not seen (everything, when it names no version or asks for it), then every change until the timeout. A version that is
 * too old gets an ERROR event with code 410. What that returns ends the watch.
 */
export function prepareWatch(store: Store, request: WatchRequest): (sink: WatchSink) => () => void {
  const { target, query, representation, bookmarkSeconds } = request;
  const matches = matcherFor(target, query);
  const timeoutMs = 1000 * (numberIn(query, "timeoutSeconds") ?? 1800);
  const initial = query.get("sendInitialEvents");
  if (initial !== null && query.get("resourceVersionMatch") !== "NotOlderThan")
    throw unprocessable(
      "ListOptions is invalid: resourceVersionMatch: Forbidden: sendInitialEvents needs NotOlderThan",
    );
  const from = query.get("resourceVersion") ?? "";
  return (sink) => {
    const stream = new EventStream(representation, sink, matches);
    const unsubscribe = store.subscribe((change) => {
      if (change.key === target.kind.key) stream.change(change);
    });
    const bookmarks = setInterval(() => {
      if (query.get("allowWatchBookmarks") === "true") stream.bookmark(store.version);
    }, bookmarkSeconds * 1000);
    const timeout = setTimeout(() => sink.end(), timeoutMs);
    try {
      if (initial !== "true" && !["", "0"].includes(from))
        for (const change of store.since(target.kind.key, from)) stream.change(change);
      else for (const object of store.list(target.kind.key).filter(matches)) stream.write("ADDED", object);
      if (initial === "true") stream.bookmark(store.version, { "k8s.io/initial-events-end": "true" });
    } catch (error) {
      stream.fail(error);
    }
    return () => {
      unsubscribe();
      clearInterval(bookmarks);
      clearTimeout(timeout);
    };
  };
}

class EventStream {
  readonly #representation: Representation;
  readonly #sink: WatchSink;
  readonly #matches: (object: KubeObject) => boolean;
  #first = true;

  constructor(representation: Representation, sink: WatchSink, matches: (object: KubeObject) => boolean) {
    [this.#representation, this.#sink, this.#matches] = [representation, sink, matches];
  }

  /** For a watch with a selector an object appears when it begins to match, and disappears when it no longer does. */
  change({ type, object, previous }: Change): void {
    const now = type !== "DELETED" && this.#matches(object);
    const before = previous !== undefined && this.#matches(previous);
    if (now || before) this.write(now ? (before ? "MODIFIED" : "ADDED") : "DELETED", object);
  }

  write(type: string, object: KubeObject): void {
    this.#send(type, this.#representation.streamed([object], object.metadata, this.#first));
  }

  bookmark(resourceVersion: string, annotations = {}): void {
    const metadata = { resourceVersion, creationTimestamp: null, annotations };
    this.#send("BOOKMARK", this.#representation.streamed([], metadata, this.#first));
  }

  /** Ends the stream, as the API does once the answer has begun. */
  fail(error: unknown): void {
    if (!(error instanceof ApiError)) throw error;
    this.#send("ERROR", error.toStatus());
    this.#sink.end();
  }

  #send(type: string, object: object): void {
    this.#first = false;
    this.#sink.write(`${JSON.stringify({ type, object })}\n`);
  }
}
