/** What JSON calls an object. Its values are looked at before they are used. */
export type JsonObject = { [key: string]: unknown };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object at `key`; an empty one when there is none, so that a reader need not ask at every step. */
export function objectAt(parent: unknown, key: string): JsonObject {
  const child = isObject(parent) ? parent[key] : undefined;
  return isObject(child) ? child : {};
}

/** The objects of the list at `key`; none when there is no list. */
export function objectsAt(parent: unknown, key: string): JsonObject[] {
  const child = isObject(parent) ? parent[key] : undefined;
  return Array.isArray(child) ? child.filter(isObject) : [];
}

/** A copy of `object` without `keys`. */
export function without(object: JsonObject, ...keys: string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));
}
