import { ApiError } from "../kubernetes-objects/api-error.ts";
import type { KubeObject } from "../kubernetes-objects/kube-object.ts";

export interface Change {
  /** The resourceVersion that this change made. */
  version: number;
  key: string;
  type: "ADDED" | "MODIFIED" | "DELETED";
  object: KubeObject;
  previous: KubeObject | undefined;
}

interface Init {
  version: number;
  objects: Iterable<[string, KubeObject]>;
  /** How many changes can be replayed; what is older answers 410. */
  historySize: number;
  /** Milliseconds since 1970. */
  now: () => number;
}

/** All objects, under the key of their kind, and the latest changes to them. One counter numbers every change. */
export class Store {
  readonly now: () => number;
  readonly #tables = new Map<string, Map<string, KubeObject>>();
  readonly #history: Change[] = [];
  readonly #historySize: number;
  readonly #listeners = new Set<(change: Change) => void>();
  #version: number;
  #oldest: number;

  constructor({ version, objects, historySize, now }: Init) {
    [this.#version, this.#oldest, this.#historySize, this.now] = [version, version, historySize, now];
    for (const [key, object] of objects) this.#table(key).set(placeOf(object), object);
  }

  get version(): string {
    return `${this.#version}`;
  }

  get(key: string, namespace: string, name: string): KubeObject | undefined {
    return this.#table(key).get(`${namespace}/${name}`);
  }

  list(key: string): KubeObject[] {
    return [...this.#table(key).values()];
  }

  /** Everything, with its key. */
  entries(): [string, KubeObject][] {
    return [...this.#tables].flatMap(([key, table]) =>
      [...table.values()].map((one): [string, KubeObject] => [key, one]),
    );
  }

  /** The objects as they were at `version`, in the order of names. Throws a 410 when that is too long ago. */
  listAt(key: string, version: string): KubeObject[] {
    const table = new Map(this.#table(key));
    for (const { object, previous } of this.since(key, version).reverse()) {
      if (previous === undefined) table.delete(placeOf(object));
      else table.set(placeOf(object), previous);
    }
    return [...table.values()].sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
  }

  /** The changes after `version`. Throws a 410 when it is too old, or of a state that was lost. */
  since(key: string, version: string): Change[] {
    const from = Number(version);
    if (!(from >= this.#oldest && from <= this.#version))
      throw new ApiError(410, "Expired", `too old resource version: ${version} (${this.#oldest})`);
    return this.#history.filter((change) => change.version > from && change.key === key);
  }

  /** Stores `object` under a new resourceVersion, or removes it. Returns what watches are told: its last state. */
  write(key: string, object: KubeObject, gone = false): KubeObject {
    const table = this.#table(key);
    const previous = table.get(placeOf(object));
    this.#version += 1;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: this.version } };
    if (gone) table.delete(placeOf(object));
    else table.set(placeOf(object), stored);
    const type = gone ? "DELETED" : previous === undefined ? "ADDED" : "MODIFIED";
    const change: Change = { version: this.#version, key, type, object: stored, previous };
    this.#history.push(change);
    if (this.#history.length > this.#historySize) this.#oldest = this.#history.shift()?.version ?? this.#oldest;
    for (const listener of Array.from(this.#listeners)) listener(change);
    return stored;
  }

  /** Calls `listener` after each change, in order. Returns the function that ends it. */
  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #table(key: string): Map<string, KubeObject> {
    const table = this.#tables.get(key) ?? new Map<string, KubeObject>();
    this.#tables.set(key, table);
    return table;
  }
}

/** Where an object stands in a table, and in a list. */
export function placeOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}

/** Times of the API have whole seconds. */
export function timestamp(store: Store, laterSeconds = 0): string {
  return new Date(store.now() + laterSeconds * 1000).toISOString().replace(/\.\d+Z$/, "Z");
}
