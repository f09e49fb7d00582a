import { badRequest } from "./api-error.ts";
import { isObject } from "./json.ts";
import type { Kind } from "./kind.ts";
import { toShown } from "./shown-form.ts";
import type { StoredObject } from "./stored-object.ts";

export type Matcher = (object: StoredObject) => boolean;

/** Compiles a label selector: `a=b,c!=d,e in (f,g),h notin (i),j,!k`. Throws a 400 when it is none. */
export function labelMatcher(selector: string | undefined): Matcher {
  const tests = split(selector, /,(?![^(]*\))/).map(labelTest);
  return ({ metadata }) => tests.every((test) => test(metadata.labels ?? {}));
}

function labelTest(term: string): (labels: Record<string, string>) => boolean {
  const set = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(term);
  if (set !== null) {
    const [, key = "", operator, list = ""] = set;
    const values = list.split(",").map((value) => value.trim());
    return (labels) =>
      values.includes(labels[key] ?? "") === (operator === "in") && (operator !== "in" || key in labels);
  }
  const equality = /^([\w./-]+)\s*(!=|==?)\s*([\w.-]*)$/.exec(term);
  if (equality !== null) {
    const [, key = "", operator, value] = equality;
    return (labels) => (labels[key] === value) === (operator !== "!=");
  }
  const existence = /^(!?)\s*([\w./-]+)$/.exec(term);
  if (existence === null) throw badRequest(`unable to parse requirement: ${term}`);
  const [, not, key = ""] = existence;
  return (labels) => Object.hasOwn(labels, key) === (not === "");
}

/** Compiles a field selector: `metadata.name=a,spec.nodeName!=b`. Throws a 400 for a field that cannot be selected. */
export function fieldMatcher(kind: Kind, selector: string | undefined): Matcher {
  const tests = split(selector, /,/).map((term) => fieldTest(kind, term));
  return (object) => tests.length === 0 || tests.every((test) => test(toShown(kind, object)));
}

function fieldTest(kind: Kind, term: string): (shown: unknown) => boolean {
  const [, path, operator, wanted] = /^([\w.[\]-]+)(!=|==?)(.*)$/.exec(term) ?? [];
  if (path === undefined) throw badRequest(`invalid selector: '${term}'; can't understand '${term}'`);
  const selectable = ["metadata.name", "metadata.namespace", ...(kind.selectableFields ?? [path])];
  if (!selectable.includes(path)) throw badRequest(`field label not supported: ${path}`);
  const steps = path.split(".");
  return (shown) => {
    const found = steps.reduce<unknown>((value, step) => (isObject(value) ? value[step] : undefined), shown);
    return (String(found ?? "") === wanted) === (operator !== "!=");
  };
}

function split(selector: string | undefined, separator: RegExp): string[] {
  return (selector ?? "")
    .split(separator)
    .map((term) => term.trim())
    .filter((term) => term !== "");
}
