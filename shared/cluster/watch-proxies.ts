import { type Proxy, proxy } from "#shared/model/proxy.ts";
import { proxyKind } from "./proxies.ts";
import { type NamespacesWatch, watchNamespaces } from "./watch-namespaces.ts";

export interface WatchProxiesOptions extends NamespacesWatch {
  /** A rejection brings the same change again later. */
  onSet: (proxy: Proxy) => Promise<void>;
  onGone: (key: string) => Promise<void>;
  /** One that exists and cannot be read: `fields` says why, without values. */
  onUnreadable: (key: string, fields: string) => void;
}

/** Lists and watches the Proxies of some namespaces, or of all. Resolves when the signal fires. */
export async function watchProxies(options: WatchProxiesOptions): Promise<void> {
  await watchNamespaces({
    ...options,
    kind: proxyKind,
    onChange: (change) =>
      change.kind === "gone" ? options.onGone(change.key) : set(change.key, change.object, options),
  });
}

async function set(key: string, object: unknown, { onSet, onUnreadable }: WatchProxiesOptions): Promise<void> {
  const parsed = proxy.safeParse(object);
  if (parsed.success) return onSet(parsed.data);
  onUnreadable(key, parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; "));
}
