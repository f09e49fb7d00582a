import type { Failure } from "#shared/errors/failure.ts";
import type { ClusterConnection } from "./connection.ts";
import { listPaths, type ResourceKind } from "./pages.ts";
import { type WatchTiming, watchResource } from "./watch.ts";
import type { Change } from "./watched-objects.ts";

/** Which namespaces are followed, and what is told besides the changes. */
export interface NamespacesWatch {
  connection: ClusterConnection;
  namespaces: readonly string[] | "*";
  /** Every namespace was listed once. */
  onSynced: () => void;
  /** Changes that only a later list has found. */
  onMissed: (count: number) => void;
  onFailure: (failure: Failure) => void;
  signal: AbortSignal;
  timing?: Partial<WatchTiming>;
}

interface KindToWatch {
  kind: ResourceKind;
  metadataOnly?: boolean;
  /** A rejection brings the same change again later. */
  onChange: (change: Change) => Promise<void>;
}

/** Lists and watches one kind in some namespaces, or in all: one watch each. Resolves when the signal fires. */
export async function watchNamespaces(options: NamespacesWatch & KindToWatch): Promise<void> {
  const { connection, signal, onChange, onFailure, onMissed, onSynced, metadataOnly = false, timing = {} } = options;
  const paths = listPaths(options.kind, options.namespaces);
  const waiting = new Set(paths);
  const watches = paths.map((path) =>
    watchResource({
      connection,
      path,
      metadataOnly,
      signal,
      onFailure,
      timing,
      onChange,
      onListed: ({ missed }) => {
        if (missed > 0) onMissed(missed);
        if (waiting.delete(path) && waiting.size === 0) onSynced();
      },
    }),
  );
  await Promise.all(watches);
}
