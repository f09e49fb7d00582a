import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { z } from "zod";
import { Failure } from "#shared/errors/failure.ts";
import type { Store } from "./store.ts";
import { storedObject } from "./stored-object.ts";

const saved = z.object({ version: z.number().int(), objects: z.array(z.tuple([z.string(), storedObject])) });
export type SavedState = z.infer<typeof saved>;

// Changes of the last moments before a kill are not in the file, but clients have seen their resourceVersions. A jump far
// beyond what can happen in that time makes sure that no number is ever given out twice.
const versionJump = 1_000_000;
const delayMs = 100;

/** Reads the state of an earlier run; an empty one when there is no file. Throws a Failure that names an unreadable file. */
export async function loadState(path: string): Promise<SavedState> {
  try {
    const state = saved.parse(JSON.parse(await readFile(path, "utf8")));
    return { ...state, version: state.version + versionJump };
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return { version: 1, objects: [] };
    throw new Failure({
      class: "Permanent",
      code: "UnreadableState",
      message: `${path} does not hold the state of the local Kubernetes API. Remove it to start with an empty one.`,
      cause: error,
    });
  }
}

/**
 * Keeps the file up to date with the store: at most 0.1 s and the time of one write behind. A write that fails goes to
 * `onError` and is repeated with the next change. The file holds Secrets: only its owner may read it.
 */
export class DataFile {
  readonly #path: string;
  readonly #store: Store;
  readonly #onError: (error: unknown) => void;
  readonly #unsubscribe: () => void;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(deps: { path: string; store: Store; onError: (error: unknown) => void }) {
    this.#path = deps.path;
    this.#store = deps.store;
    this.#onError = deps.onError;
    this.#unsubscribe = deps.store.subscribe(() => {
      this.#timer ??= setTimeout(() => {
        this.flush().catch(this.#onError);
      }, delayMs);
    });
  }

  /** Writes the present state, after any write that is under way. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.catch(() => undefined).then(() => this.#write());
    return this.#writing;
  }

  /** Writes one last time. */
  close(): Promise<void> {
    this.#unsubscribe();
    return this.flush();
  }

  async #write(): Promise<void> {
    const state: SavedState = { version: this.#store.version, objects: [...this.#store.entries()] };
    const temporary = `${this.#path}.${process.pid}.tmp`;
    try {
      await writeFile(temporary, JSON.stringify(state), { mode: 0o600, flush: true });
      await rename(temporary, this.#path); // a reader sees the old state or the new one, never half of one
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }
}
