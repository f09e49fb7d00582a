import { unknownPath } from "./api-error.ts";
import type { ApiState } from "./api-state.ts";
import { apiVersionOf, type Kind } from "./kind.ts";

const verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

export function coreVersions(): object {
  return { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [] };
}

export function groupList(api: ApiState): object {
  const groups = [...new Set(api.kinds.all().map((kind) => kind.group))].filter((group) => group !== "");
  return { kind: "APIGroupList", apiVersion: "v1", groups: groups.map((group) => groupOf(api, group)) };
}

/** Throws a 404 for a group that nothing is served of. */
export function groupOf(api: ApiState, group: string): object {
  const ofGroup = api.kinds.all().filter((kind) => kind.group === group);
  const names = [...new Set(ofGroup.map((kind) => kind.version))];
  if (group === "" || names.length === 0) throw unknownPath();
  const versions = names.map((version) => ({ groupVersion: apiVersionOf({ group, version }), version }));
  return { kind: "APIGroup", apiVersion: "v1", name: group, versions, preferredVersion: versions[0] };
}

/** Throws a 404 for a version that nothing is served of. */
export function resourceList(api: ApiState, group: string, version: string): object {
  const kinds = api.kinds.all().filter((kind) => kind.group === group && kind.version === version);
  if (kinds.length === 0) throw unknownPath();
  const groupVersion = apiVersionOf({ group, version });
  return { kind: "APIResourceList", apiVersion: "v1", groupVersion, resources: kinds.flatMap(resources) };
}

function resources({ kind, plural, singular, namespaced, shortNames, categories, hasStatus }: Kind): object[] {
  const subresource = (name: string, subVerbs: string[]): object => ({
    ...{ name: `${plural}/${name}`, singularName: "", namespaced, kind, verbs: subVerbs },
  });
  return [
    { name: plural, singularName: singular, namespaced, kind, verbs, shortNames, categories },
    ...(hasStatus ? [subresource("status", ["get", "patch", "update"])] : []),
    ...(kind === "Pod" ? [subresource("binding", ["create"])] : []),
  ];
}
