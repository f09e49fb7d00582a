import type { Failure } from "#shared/errors/failure.ts";
import { type Proxy, proxy } from "#shared/model/proxy.ts";
import type { ClusterConnection } from "./connection.ts";
import { listPaths } from "./pages.ts";
import { proxyKind } from "./proxies.ts";
import { type WatchTiming, watchResource } from "./watch.ts";

export interface WatchProxiesOptions {
  connection: ClusterConnection;
  namespaces: readonly string[] | "*";
  /** A rejection brings the same change again later. */
  onSet: (proxy: Proxy) => Promise<void>;
  onGone: (key: string) => Promise<void>;
  /** Every namespace was listed once. */
  onSynced: () => void;
  /** Changes that only a later list has found. */
  onMissed: (count: number) => void;
  /** One that exists and cannot be read: `fields` says why, without values. */
  onUnreadable: (key: string, fields: string) => void;
  onFailure: (failure: Failure) => void;
  signal: AbortSignal;
  timing?: Partial<WatchTiming>;
}

/** Lists and watches the Proxies of some namespaces, or of all. Resolves when the signal fires. */
export async function watchProxies(options: WatchProxiesOptions): Promise<void> {
  const { connection, signal, onFailure, onMissed, onGone, timing = {} } = options;
  const paths = listPaths(proxyKind, options.namespaces);
  const waiting = new Set(paths);
  const watches = paths.map((path) =>
    watchResource({
      connection,
      path,
      signal,
      onFailure,
      timing,
      onChange: (change) => (change.kind === "gone" ? onGone(change.key) : set(change.key, change.object, options)),
      onListed: ({ missed }) => {
        if (missed > 0) onMissed(missed);
        if (waiting.delete(path) && waiting.size === 0) options.onSynced();
      },
    }),
  );
  await Promise.all(watches);
}

async function set(key: string, object: unknown, { onSet, onUnreadable }: WatchProxiesOptions): Promise<void> {
  const parsed = proxy.safeParse(object);
  if (parsed.success) return onSet(parsed.data);
  onUnreadable(key, parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; "));
}
