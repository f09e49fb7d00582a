import { isDeepStrictEqual } from "node:util";

type Fields = Readonly<Record<string, unknown>>;

/**
 * The JSON merge patch (RFC 7386) that turns `before` into `after`: only what differs, and `null` for what vanished, at
 * any depth. Lists are replaced whole; a field that is undefined counts as absent.
 */
export function mergePatch(before: Fields, after: Fields): Record<string, unknown> {
  const patch: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, now] = [before[key], after[key]];
    if (isDeepStrictEqual(old, now)) continue;
    if (now === undefined) patch[key] = null;
    else patch[key] = isFields(old) && isFields(now) ? mergePatch(old, now) : now;
  }
  return patch;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
