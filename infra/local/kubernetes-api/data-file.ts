import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { z } from "zod";
import { Failure } from "#shared/errors/failure.ts";
import { kubeObject } from "../kubernetes-objects/kube-object.ts";
import type { Store } from "./store.ts";

const saved = z.object({ version: z.number().int(), objects: z.array(z.tuple([z.string(), kubeObject])) });

// The changes of the last moments before a kill are not in the file, but clients saw their versions. A jump far beyond
// what can happen in that time makes sure that no version is given out twice.
const versionJump = 1_000_000;
const delayMs = 100;

/** The state of an earlier run; an empty one when there is no file. Throws a Failure that names an unreadable file. */
export async function loadState(path: string): Promise<z.infer<typeof saved>> {
  try {
    const { version, objects } = saved.parse(JSON.parse(await readFile(path, "utf8")));
    return { version: version + versionJump, objects };
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return { version: 1, objects: [] };
    const message = `${path} does not hold the state of the local Kubernetes API. Remove it to start with an empty one.`;
    throw new Failure({ class: "Permanent", code: "UnreadableState", message, cause });
  }
}

/**
 * Writes the file, then keeps it at most 0.1 s, and the time of one write, behind the store. A later write that fails is
 * told to `onError` and repeated with the next change. The file holds Secrets: only its owner may read it. Returns the
 * function that writes it one last time.
 */
export async function keepDataFile(path: string, store: Store, onError: (error: unknown) => void) {
  let timer: NodeJS.Timeout | undefined;
  let writing = Promise.resolve();
  const flush = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const write = (): Promise<void> => save(path, store);
    writing = writing.then(write, write); // one after the other, whatever became of the one before
    return writing;
  };
  const unsubscribe = store.subscribe(() => {
    timer ??= setTimeout(() => void flush().catch(onError), delayMs);
  });
  await flush();
  return (): Promise<void> => {
    unsubscribe();
    return flush();
  };
}

async function save(path: string, store: Store): Promise<void> {
  const temporary = `${path}.tmp`;
  try {
    const state = { version: Number(store.version), objects: store.entries() };
    await writeFile(temporary, JSON.stringify(state), { mode: 0o600, flush: true });
    await rename(temporary, path); // a reader finds the old state or the new one, never half of one
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
