import { coreKinds } from "./core-kinds.ts";
import { customKinds } from "./custom-kinds.ts";
import type { Kind } from "./kind.ts";
import type { Store } from "./store.ts";

export const namespacesKey = "/namespaces";
export const definitionsKey = "apiextensions.k8s.io/customresourcedefinitions";

/** The kinds that are served now: the built-in ones and those of the CustomResourceDefinitions in the store. */
export class Kinds {
  readonly #store: Store;
  #custom: Kind[] = [];

  constructor(store: Store) {
    this.#store = store;
    this.#reload();
    store.subscribe((change) => {
      if (change.storeKey === definitionsKey) this.#reload();
    });
  }

  all(): Kind[] {
    return [...coreKinds, ...this.#custom];
  }

  find(group: string, version: string, plural: string): Kind | undefined {
    return this.all().find((kind) => kind.group === group && kind.version === version && kind.plural === plural);
  }

  /** Any version of what lies under this key: enough to delete it. */
  ofStoreKey(storeKey: string): Kind | undefined {
    return this.all().find((kind) => kind.storeKey === storeKey);
  }

  #reload(): void {
    this.#custom = this.#store.list(definitionsKey).flatMap(customKinds);
  }
}
