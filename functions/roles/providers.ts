import { toFailure } from "#shared/errors/failure.ts";
import type { ProviderEntry } from "#shared/provider/config.ts";
import { loadProvidersFile, type ProvidersFile, watchProvidersFile } from "#shared/provider/config-file.ts";
import { loggerOf, type ProcessContext } from "./process-context.ts";

type Apply = (entries: ProviderEntry[]) => void | Promise<void>;

/** The providers file as one process follows it: read once for all roles, so that nothing is said or counted twice. */
export class FollowedProvidersFile {
  readonly #context: Omit<ProcessContext, "providersFile">;
  readonly #pollMs: number | undefined;
  readonly #stop = new AbortController();
  readonly #roles = new Set<Apply>();
  #loading: Promise<ProvidersFile> | undefined;
  #entries: ProviderEntry[] = [];
  #watching: Promise<void> = Promise.resolve();
  #telling: Promise<unknown> = Promise.resolve();

  /** Nothing is read before the first `follow`. `pollMs`: how often the file is looked at; for tests. */
  constructor(context: Omit<ProcessContext, "providersFile">, pollMs?: number) {
    this.#context = context;
    this.#pollMs = pollMs;
  }

  /**
   * Tells a role what the file says, now and after each change, until the role stops. A bad file at the start is thrown,
   * with its path; a bad one later is reported and changes nothing.
   */
  async follow(path: string, apply: Apply): Promise<void> {
    this.#loading ??= this.#open(path);
    await this.#loading;
    this.#roles.add(apply);
    // Added after what `apply` feeds, so stopped before it: a stopped consumer is not to be started anew.
    this.#context.parts.add("providers file", () => this.#leave(apply));
    await apply(this.#entries);
  }

  async #open(path: string): Promise<ProvidersFile> {
    const log = loggerOf(this.#context, "providers");
    const loaded = await loadProvidersFile(path);
    this.#entries = loaded.entries;
    this.#watching = watchProvidersFile({
      path,
      loaded,
      intervalMs: this.#pollMs,
      signal: this.#stop.signal,
      onChange: async ({ entries }) => {
        this.#entries = entries;
        await this.#tell(entries);
        log.info({ providers: entries.map(({ name }) => name) }, "the providers file was reloaded");
      },
      onError: (error) => {
        this.#context.metrics.problems.inc({ kind: "providers-file" });
        log.error({ reason: toFailure(error).message }, "the providers file is bad: the last good one stays in force");
      },
    });
    return loaded;
  }

  /** Every role, also when one of them fails; then throws what the first of those threw. */
  async #tell(entries: ProviderEntry[]): Promise<void> {
    const telling = Promise.allSettled([...this.#roles].map(async (apply) => await apply(entries)));
    this.#telling = telling;
    const failed = (await telling).find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  async #leave(apply: Apply): Promise<void> {
    this.#roles.delete(apply);
    await this.#telling;
    if (this.#roles.size > 0) return;
    this.#stop.abort();
    await this.#watching;
  }
}
