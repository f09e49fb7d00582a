import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure, toFailure } from "#shared/errors/failure.ts";
import { type ProviderEntry, parseProviders } from "./config.ts";

export interface ProvidersFile {
  entries: ProviderEntry[];
  /** Hash of the text, to tell whether the file changed. */
  digest: string;
}

// A file system that hangs must not hang the process.
const readTimeoutMs = 10_000;

/**
 * Reads and parses the providers file. Throws Permanent `InvalidProvidersFile`, or Transient `ProvidersFileUnreadable`;
 * both messages start with the path of the file.
 */
export async function loadProvidersFile(path: string): Promise<ProvidersFile> {
  const content = await read(path);
  if (content instanceof Failure) throw content;
  return parse(path, content);
}

export interface WatchProvidersFile {
  path: string;
  /** What the caller runs with already; undefined: the first good content is reported as a change. */
  loaded?: ProvidersFile | undefined;
  intervalMs?: number | undefined;
  /** A good content that differs from the last good one; also the first good one after an error, even if unchanged. */
  onChange: (file: ProvidersFile) => void | Promise<void>;
  /** A bad or missing file, once per content: the last good one stays. Also what `onChange` threw. */
  onError: (failure: Failure) => void;
  signal: AbortSignal;
}

/**
 * Polls the content of the providers file until `signal` fires: mounted ConfigMaps change by a symlink swap, which file
 * watchers miss. Never throws.
 */
export async function watchProvidersFile(options: WatchProvidersFile): Promise<void> {
  const { path, loaded, intervalMs = 5000, onChange, onError, signal } = options;
  let seen = loaded?.digest;
  while (!signal.aborted) {
    const content = await read(path);
    const digest = content instanceof Failure ? content.message : digestOf(content);
    if (digest !== seen && !signal.aborted) {
      seen = digest;
      try {
        if (content instanceof Failure) throw content;
        await onChange(parse(path, content));
      } catch (error) {
        onError(toFailure(error));
      }
    }
    // The rejection only says that the signal fired.
    await sleep(intervalMs, undefined, { signal }).catch(() => undefined);
  }
}

async function read(path: string): Promise<string | Failure> {
  try {
    return await readFile(path, { encoding: "utf8", signal: AbortSignal.timeout(readTimeoutMs) });
  } catch (error) {
    const message = `${path}: cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    return new Failure({
      class: "Transient",
      code: "ProvidersFileUnreadable",
      scope: "provider",
      message,
      cause: error,
    });
  }
}

function parse(path: string, text: string): ProvidersFile {
  try {
    return { entries: parseProviders(text), digest: digestOf(text) };
  } catch (error) {
    const { class: failureClass, code, message } = toFailure(error);
    throw new Failure({ class: failureClass, code, scope: "provider", message: `${path}: ${message}`, cause: error });
  }
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
