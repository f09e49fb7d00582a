import type { WatcherDeps } from "#functions/watcher/watcher.ts";
import type { ClusterConnection } from "#shared/cluster/connection.ts";
import { watchProxies } from "#shared/cluster/watch-proxies.ts";
import { watchSecrets } from "#shared/cluster/watch-secrets.ts";
import type { Failure } from "#shared/errors/failure.ts";
import { type ClusterSettings, watchedNamespaces } from "#shared/process/settings.ts";
import { loggerOf, type ProcessContext } from "./process-context.ts";

/** The watches of the cluster, with metrics and log of what goes wrong in them. */
export function clusterWatches(
  context: ProcessContext,
  settings: ClusterSettings,
  connection: ClusterConnection,
): Pick<WatcherDeps, "watchProxies" | "watchSecrets"> {
  const log = loggerOf(context, "watcher");
  const count = (kind: string, by = 1): void => context.metrics.problems.inc({ kind }, by);
  const watch = (objects: string, signal: AbortSignal) => ({
    connection,
    namespaces: watchedNamespaces(settings),
    signal,
    onMissed: (missed: number) => {
      count("watch-missed", missed);
      log.warn({ objects, missed }, "a list found changes that no watch had told of");
    },
    onFailure: ({ code, message }: Failure) => {
      count("watch-failed");
      log.warn({ objects, code, reason: message }, "a watch failed and is tried again");
    },
  });
  return {
    watchProxies: (handlers, signal) =>
      watchProxies({
        ...watch("Proxies", signal),
        ...handlers,
        onUnreadable: (key, fields) => {
          count("proxy-unreadable");
          log.error({ proxy: key, fields }, "a Proxy does not parse; it is left alone");
        },
      }),
    watchSecrets: ({ onTouched, onSynced }, signal) => {
      const touched = (secret: { namespace: string; name: string }) => onTouched(`${secret.namespace}/${secret.name}`);
      return watchSecrets({ ...watch("Secrets", signal), onSynced, onChanged: touched, onGone: touched });
    },
  };
}
