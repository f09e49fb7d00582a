import { unknownPath } from "../kubernetes-objects/api-error.ts";
import type { Kind } from "../kubernetes-objects/kind.ts";
import { servedKinds } from "./kinds.ts";
import type { Store } from "./store.ts";

const verbs = ["create", "delete", "get", "list", "patch", "update", "watch"];

/** The answer to GET /apis. */
export function groupList(store: Store): object {
  const names = new Set(servedKinds(store).map(({ group }) => group));
  names.delete("");
  return { kind: "APIGroupList", apiVersion: "v1", groups: [...names].map((name) => groupOf(store, name)) };
}

/** The answer to GET /apis/GROUP. Throws a 404 for a group that nothing is served of. */
export function groupOf(store: Store, name: string): object {
  const kinds = servedKinds(store).filter(({ group }) => group === name && group !== "");
  const byVersion = new Map(kinds.map(({ version, apiVersion }) => [version, { groupVersion: apiVersion, version }]));
  const versions = [...byVersion.values()];
  if (versions.length === 0) throw unknownPath();
  return { kind: "APIGroup", apiVersion: "v1", name, versions, preferredVersion: versions[0] };
}

/** The answer to GET /apis/GROUP/VERSION. Throws a 404 when nothing is served of it. */
export function resourceList(store: Store, groupVersion: string): object {
  const resources = kindsOf(store, groupVersion).flatMap((served) => {
    const { kind, plural, singular: singularName, namespaced, shortNames, categories, hasStatus } = served;
    const status = { name: `${plural}/status`, singularName: "", namespaced, kind, verbs: ["get", "patch", "update"] };
    const resource = { name: plural, singularName, namespaced, kind, verbs, shortNames, categories };
    return hasStatus ? [resource, status] : [resource];
  });
  return { kind: "APIResourceList", apiVersion: "v1", groupVersion, resources };
}

/** The list of OpenAPI documents. */
export function openApiIndex(store: Store): object {
  const paths = new Set(servedKinds(store).map(basePath));
  return { paths: Object.fromEntries([...paths].map((path) => [path, { serverRelativeURL: `/openapi/v3/${path}` }])) };
}

/**
 * What kubectl explain shows, and where kubectl apply looks for the parameter fieldValidation before it leaves the check
 * of fields to the server. Throws a 404 for a group version that is not served.
 */
export function openApiDocument(store: Store, groupVersion: string): object {
  const kinds = kindsOf(store, groupVersion);
  const schemas = kinds.map((kind): [string, object] => {
    const schema = kind.schema?.openApi ?? { type: "object" };
    // The group's labels the other way round, as Java names packages.
    const name = [...kind.group.split(".").reverse(), kind.version, kind.kind].filter(Boolean).join(".");
    return [name, { ...schema, "x-kubernetes-group-version-kind": [typeOf(kind)] }];
  });
  const [info, paths] = [{ title: "Kubernetes", version: "v1.35.0" }, Object.fromEntries(kinds.flatMap(pathsOf))];
  return { openapi: "3.0.0", info, paths, components: { schemas: Object.fromEntries(schemas) } };
}

function kindsOf(store: Store, groupVersion: string): Kind[] {
  const kinds = servedKinds(store).filter(({ apiVersion }) => apiVersion === groupVersion);
  if (kinds.length === 0) throw unknownPath();
  return kinds;
}

function basePath({ group, apiVersion }: Kind): string {
  return `${group === "" ? "api" : "apis"}/${apiVersion}`;
}

function typeOf({ group, version, kind }: Kind): object {
  return { group, version, kind };
}

function pathsOf(kind: Kind): [string, object][] {
  const all = `/${basePath(kind)}${kind.namespaced ? "/namespaces/{namespace}" : ""}/${kind.plural}`;
  const parameters = ["dryRun", "fieldManager", "fieldValidation"].map((name) => ({ name, in: "query" }));
  const actions = (...names: string[]): object => {
    const about = { parameters, "x-kubernetes-group-version-kind": typeOf(kind) };
    return Object.fromEntries(names.map((name) => [name, { ...about, "x-kubernetes-action": name }]));
  };
  return [
    [all, actions("get", "post")],
    [`${all}/{name}`, actions("get", "put", "patch", "delete")],
  ];
}
