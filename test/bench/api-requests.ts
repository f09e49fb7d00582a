import type { ApiClient } from "#test/api-client.ts";

/** Requests that an API server has answered so far, by `<verb> <resource>[/<subresource>]`, as its metrics count them. */
export type ApiRequests = ReadonlyMap<string, number>;

const sample = /^apiserver_request_total\{([^}]*)\} (\S+)$/gm;

export async function readApiRequests(client: ApiClient): Promise<ApiRequests> {
  const { text } = await client.call("GET", "/metrics");
  const counts = new Map<string, number>();
  for (const [, labels = "", value = "0"] of text.matchAll(sample)) {
    const label = (name: string): string => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? "";
    const [resource, subresource] = [label("resource"), label("subresource")];
    const key = `${label("verb")} ${subresource === "" ? resource : `${resource}/${subresource}`}`;
    counts.set(key, (counts.get(key) ?? 0) + Number(value));
  }
  return counts;
}

/** What came between two readings. `wanted` picks by key. */
export function requestsBetween(before: ApiRequests, after: ApiRequests, wanted: (key: string) => boolean): number {
  let sum = 0;
  for (const [key, count] of after) if (wanted(key)) sum += count - (before.get(key) ?? 0);
  return sum;
}

const writing = new Set(["POST", "PUT", "PATCH", "DELETE", "APPLY"]);

export function isWrite(key: string, resource: string): boolean {
  const [verb = "", what = ""] = key.split(" ");
  return writing.has(verb) && what.split("/")[0] === resource;
}
