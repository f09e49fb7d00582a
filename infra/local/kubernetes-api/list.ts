import { z } from "zod";
import { badRequest } from "./api-error.ts";
import type { ApiState } from "./api-state.ts";
import type { Representation } from "./representation.ts";
import type { Query, Target } from "./request.ts";
import { fieldMatcher, labelMatcher, type Matcher } from "./selectors.ts";
import type { StoredObject } from "./stored-object.ts";

const continuation = z.tuple([z.number().int(), z.string()]);

/** Which objects a list, a watch or a deletion of many is about. */
export function matcherFor({ kind, namespace, name }: Target, query: Query): Matcher {
  const labels = labelMatcher(query.labelSelector);
  const fields = fieldMatcher(kind, query.fieldSelector);
  return (object) =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    (name === undefined || object.metadata.name === name) &&
    labels(object) &&
    fields(object);
}

/**
 * One page of a list, in the order of names. All pages show the state at the first one's resourceVersion. Throws a 410
 * when that state, or the one asked for with resourceVersionMatch=Exact, is too old.
 */
export function listObjects(api: ApiState, target: Target, query: Query, representation: Representation): object {
  const [version, after] = startOf(query, api.store.version);
  const matches = matcherFor(target, query);
  const rest = api.store
    .listAt(target.kind.storeKey, version)
    .filter(matches)
    .sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1))
    .filter((object) => after === undefined || sortKey(object) > after);
  const page = query.limit > 0 ? rest.slice(0, query.limit) : rest;
  const last = page.at(-1);
  const more =
    last === undefined || page.length === rest.length
      ? {}
      : {
          continue: Buffer.from(JSON.stringify([version, sortKey(last)])).toString("base64url"),
          remainingItemCount: rest.length - page.length,
        };
  return representation.list(page, { resourceVersion: `${version}`, ...more });
}

function startOf(query: Query, current: number): [number, string?] {
  if (query.continue !== undefined && query.continue !== "") {
    try {
      return continuation.parse(JSON.parse(Buffer.from(query.continue, "base64url").toString("utf8")));
    } catch {
      throw badRequest("continue key is not valid");
    }
  }
  return [query.resourceVersionMatch === "Exact" ? Number(query.resourceVersion) : current];
}

function sortKey({ metadata }: StoredObject): string {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}
