import { expired } from "./api-error.ts";
import type { StoredObject } from "./stored-object.ts";

export interface Change {
  /** The resourceVersion that this change made. */
  version: number;
  storeKey: string;
  type: "ADDED" | "MODIFIED" | "DELETED";
  object: StoredObject;
  previous: StoredObject | undefined;
}

/**
 * All objects, and the latest changes to them, in memory. One counter numbers every change. Objects are never changed in
 * place. `keep` is how many changes can be replayed; what is older answers 410.
 */
export class Store {
  readonly #tables = new Map<string, Map<string, StoredObject>>();
  readonly #history: Change[] = [];
  readonly #listeners = new Set<(change: Change) => void>();
  readonly #keep: number;
  #version: number;
  #oldest: number;

  constructor(init: { version: number; keep: number; objects: Iterable<[string, StoredObject]> }) {
    this.#version = init.version;
    this.#oldest = init.version;
    this.#keep = init.keep;
    for (const [storeKey, object] of init.objects) this.#table(storeKey).set(nameKey(object), object);
  }

  get version(): number {
    return this.#version;
  }

  get(storeKey: string, namespace: string | undefined, name: string): StoredObject | undefined {
    return this.#table(storeKey).get(`${namespace ?? ""}/${name}`);
  }

  list(storeKey: string): StoredObject[] {
    return [...this.#table(storeKey).values()];
  }

  /** Everything, as [store key, object]. */
  *entries(): Generator<[string, StoredObject]> {
    for (const [storeKey, table] of this.#tables) for (const object of table.values()) yield [storeKey, object];
  }

  /** The objects as they were at `version`. Throws a 410 when that is too long ago. */
  listAt(storeKey: string, version: number): StoredObject[] {
    const table = new Map(this.#table(storeKey));
    for (const change of this.since(version).reverse()) {
      if (change.storeKey !== storeKey) continue;
      if (change.previous === undefined) table.delete(nameKey(change.object));
      else table.set(nameKey(change.object), change.previous);
    }
    return [...table.values()];
  }

  /** The changes after `version`. Throws a 410 when it is too old, or from a life of this server that was lost. */
  since(version: number): Change[] {
    if (version < this.#oldest || version > this.#version)
      throw expired(`too old resource version: ${version} (${this.#oldest})`);
    return this.#history.filter((change) => change.version > version);
  }

  /** Stores `object` under a new resourceVersion and returns it as stored. */
  put(storeKey: string, object: StoredObject): StoredObject {
    const previous = this.#table(storeKey).get(nameKey(object));
    const stored = this.#numbered(object);
    this.#table(storeKey).set(nameKey(object), stored);
    this.#record({ storeKey, type: previous === undefined ? "ADDED" : "MODIFIED", object: stored, previous });
    return stored;
  }

  /** Removes `object`; what is returned, and told to watches, is its last state under a new resourceVersion. */
  remove(storeKey: string, object: StoredObject): StoredObject {
    const previous = this.#table(storeKey).get(nameKey(object));
    const last = this.#numbered(object);
    this.#table(storeKey).delete(nameKey(object));
    this.#record({ storeKey, type: "DELETED", object: last, previous });
    return last;
  }

  /** Calls `listener` after each change, in order. Returns the function that ends it. */
  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #numbered(object: StoredObject): StoredObject {
    this.#version += 1;
    return { ...object, metadata: { ...object.metadata, resourceVersion: `${this.#version}` } };
  }

  #record(change: Omit<Change, "version">): void {
    const numbered = { ...change, version: this.#version };
    this.#history.push(numbered);
    if (this.#history.length > this.#keep) this.#oldest = this.#history.shift()?.version ?? this.#oldest;
    for (const listener of [...this.#listeners]) listener(numbered);
  }

  #table(storeKey: string): Map<string, StoredObject> {
    const table = this.#tables.get(storeKey) ?? new Map<string, StoredObject>();
    this.#tables.set(storeKey, table);
    return table;
  }
}

function nameKey({ metadata }: StoredObject): string {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}
