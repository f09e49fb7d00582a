import { badRequest } from "../kubernetes-objects/api-error.ts";
import { isObject, type KubeObject } from "../kubernetes-objects/kube-object.ts";

type Matcher = (object: KubeObject) => boolean;

/** Compiles a label selector: `a=b,c!=d,e in (f,g),h notin (i),j,!k`. Throws a 400 when it is none. */
export function labelMatcher(selector: string): Matcher {
  const tests = terms(selector, /,(?![^(]*\))/).map(labelTest);
  return ({ metadata }) => tests.every((test) => test(metadata.labels ?? {}));
}

function labelTest(term: string): (labels: Record<string, string>) => boolean {
  const inSet = /^([\w./-]+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(term);
  const [, key = "", operator, list = ""] = inSet ?? /^([\w./-]+)\s*(!=|==?)\s*([\w.-]*)$/.exec(term) ?? [];
  const values = list.split(",").map((value) => value.trim());
  const wanted = operator !== "notin" && operator !== "!=";
  if (operator) return (labels) => (Object.hasOwn(labels, key) && values.includes(labels[key] ?? "")) === wanted;
  const [, not, present = ""] = /^(!?)([\w./-]+)$/.exec(term) ?? [];
  if (not === undefined) throw badRequest(`unable to parse requirement: ${term}`);
  return (labels) => Object.hasOwn(labels, present) === (not === "");
}

/** Compiles a field selector: `metadata.name=a,spec.nodeName!=b`; custom kinds have name and namespace alone. */
export function fieldMatcher(selector: string, anyField: boolean): Matcher {
  const read = (value: unknown, step: string): unknown => (isObject(value) ? value[step] : undefined);
  const tests = terms(selector, /,/).map((term): Matcher => {
    const [, path = "", operator, wanted] = /^([\w.-]+)(!=|==?)(.*)$/.exec(term) ?? [];
    if (operator === undefined) throw badRequest(`invalid selector: '${term}'`);
    if (!anyField && !/^metadata\.name(space)?$/.test(path)) throw badRequest(`field label not supported: ${path}`);
    const steps = path.split(".");
    return (object) => ((steps.reduce(read, object) ?? "") === wanted) === (operator !== "!=");
  });
  return (object) => tests.every((test) => test(object));
}

function terms(selector: string, separator: RegExp): string[] {
  const all = selector.split(separator).map((term) => term.trim());
  return all.filter((term) => term !== "");
}
