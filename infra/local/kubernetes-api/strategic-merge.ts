import { isObject, type JsonObject } from "./json.ts";

// How the built-in types tag their lists (patchMergeKey in k8s.io/api): items with the same key are the same item.
const mergeKeys: Record<string, string> = {
  conditions: "type",
  containers: "name",
  env: "name",
  hostAliases: "ip",
  imagePullSecrets: "name",
  initContainers: "name",
  ownerReferences: "uid",
  ports: "containerPort",
  tolerations: "key",
  volumeMounts: "mountPath",
  volumes: "name",
};

/** A strategic merge patch of a built-in kind: like a merge patch, but lists with a merge key are merged by item. */
export function strategicMerge(target: unknown, patch: JsonObject): JsonObject {
  if (patch["$patch"] === "replace") return withoutDirectives(patch);
  const merged: JsonObject = isObject(target) ? { ...target } : {};
  const retained = patch["$retainKeys"];
  if (Array.isArray(retained)) for (const key of Object.keys(merged)) if (!retained.includes(key)) delete merged[key];
  for (const [key, change] of Object.entries(patch)) {
    const [directive, field] = key.split("/", 2);
    if (directive === "$deleteFromPrimitiveList" && field !== undefined) merged[field] = minus(merged[field], change);
    else if (key.startsWith("$"))
      continue; // the order of items carries no meaning in what is served here
    else if (change === null) delete merged[key];
    else merged[key] = mergeValue(key, merged[key], change);
  }
  return merged;
}

function mergeValue(key: string, held: unknown, change: unknown): unknown {
  if (isObject(change)) return strategicMerge(held, change);
  if (!Array.isArray(change)) return change;
  const current = Array.isArray(held) ? held : [];
  if (key === "finalizers") return [...new Set([...current, ...change])];
  const mergeKey = mergeKeys[key];
  if (mergeKey === undefined) return change;
  const items = change.filter(isObject);
  const replace = items.some((item) => item["$patch"] === "replace");
  return items
    .filter((item) => item["$patch"] !== "replace")
    .reduce<unknown[]>((list, item) => mergeItem(list, item, mergeKey), replace ? [] : current);
}

function mergeItem(list: unknown[], item: JsonObject, mergeKey: string): unknown[] {
  const same = (one: unknown): boolean => isObject(one) && one[mergeKey] === item[mergeKey];
  if (item["$patch"] === "delete") return list.filter((one) => !same(one));
  if (!list.some(same)) return [...list, strategicMerge({}, item)];
  return list.map((one) => (same(one) ? strategicMerge(one, item) : one));
}

function minus(held: unknown, removed: unknown): unknown {
  if (!Array.isArray(held) || !Array.isArray(removed)) return held;
  return held.filter((item) => !removed.includes(item));
}

function withoutDirectives(patch: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(patch).filter(([key]) => !key.startsWith("$")));
}
