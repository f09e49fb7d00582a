import { finalizer } from "#shared/model/names.ts";
import type { Proxy } from "#shared/model/proxy.ts";

interface Operation {
  op: "test" | "add" | "remove";
  path: string;
  value?: unknown;
}

/** Undefined where it is there already. Bound to what was read: nothing may have changed since. */
export function addFinalizerPatch({ metadata }: Proxy): Operation[] | undefined {
  if (metadata.finalizers.includes(finalizer)) return undefined;
  return [
    { op: "test", path: "/metadata/uid", value: metadata.uid },
    { op: "test", path: "/metadata/resourceVersion", value: metadata.resourceVersion },
    metadata.finalizers.length === 0
      ? { op: "add", path: "/metadata/finalizers", value: [finalizer] }
      : { op: "add", path: "/metadata/finalizers/-", value: finalizer },
  ];
}

/** Undefined where it is gone already. Bound to the object and the place of the finalizer alone: the rest may change. */
export function removeFinalizerPatch({ metadata }: Proxy): Operation[] | undefined {
  const index = metadata.finalizers.indexOf(finalizer);
  if (index < 0) return undefined;
  return [
    { op: "test", path: "/metadata/uid", value: metadata.uid },
    { op: "test", path: `/metadata/finalizers/${index}`, value: finalizer },
    { op: "remove", path: `/metadata/finalizers/${index}` },
  ];
}
