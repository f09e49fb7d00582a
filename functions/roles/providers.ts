import { toFailure } from "#shared/errors/failure.ts";
import type { ProviderEntry } from "#shared/provider/config.ts";
import { loadProvidersFile, watchProvidersFile } from "#shared/provider/config-file.ts";
import { loggerOf, type ProcessContext } from "./process-context.ts";

/**
 * Loads the providers file, and follows it until the process stops. A bad one at the start is thrown, with its path; a
 * bad one later is reported and changes nothing.
 */
export async function followProvidersFile(
  context: ProcessContext,
  path: string,
  apply: (entries: ProviderEntry[]) => void | Promise<void>,
): Promise<void> {
  const log = loggerOf(context, "providers");
  const loaded = await loadProvidersFile(path);
  await apply(loaded.entries);
  const stop = new AbortController();
  const watching = watchProvidersFile({
    path,
    loaded,
    signal: stop.signal,
    onChange: async ({ entries }) => {
      await apply(entries);
      log.info({ providers: entries.map(({ name }) => name) }, "the providers file was reloaded");
    },
    onError: (error) => {
      context.metrics.problems.inc({ kind: "providers-file" });
      log.error({ reason: toFailure(error).message }, "the providers file is bad: the last good one stays in force");
    },
  });
  context.parts.add("providers file", async () => {
    stop.abort();
    await watching;
  });
}
