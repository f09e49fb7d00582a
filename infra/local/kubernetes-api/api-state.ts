import type { Kinds } from "./kinds.ts";
import type { Store } from "./store.ts";

/** What every request works on. `now` is in milliseconds since 1970. */
export interface ApiState {
  store: Store;
  kinds: Kinds;
  now: () => number;
}

/** How a write is to be done. */
export interface WriteOptions {
  dryRun: boolean;
  /** What happens to fields that the schema does not know: refused, named in a warning, or dropped without a word. */
  fieldValidation: "Strict" | "Warn" | "Ignore";
}
