import { createHash } from "node:crypto";
import { unknownPath } from "./api-error.ts";
import type { ApiState } from "./api-state.ts";
import { apiVersionOf, type Kind } from "./kind.ts";

/** The list of documents, one per group version. kubectl takes a changed hash as a changed document. */
export function openApiIndex(api: ApiState): object {
  const paths = new Map<string, object>();
  for (const kind of api.kinds.all()) {
    const path = basePath(kind).slice(1);
    const hash = createHash("sha256")
      .update(JSON.stringify(openApiDocument(api, kind)))
      .digest("hex");
    paths.set(path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` });
  }
  return { paths: Object.fromEntries(paths) };
}

/**
 * What kubectl explain shows and what kubectl apply reads before it leaves the validation of fields to the server: that
 * depends on the fieldValidation parameter being here. Throws a 404 for a group version that is not served.
 */
export function openApiDocument(api: ApiState, of: { group: string; version: string }): object {
  const kinds = api.kinds.all().filter((kind) => kind.group === of.group && kind.version === of.version);
  if (kinds.length === 0) throw unknownPath();
  const schemas = Object.fromEntries(
    kinds.map((kind) => [
      `${of.group === "" ? "core" : of.group}.${of.version}.${kind.kind}`,
      { ...kind.schema, "x-kubernetes-group-version-kind": [groupVersionKind(kind)] },
    ]),
  );
  return {
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: "v1.35.0" },
    paths: Object.assign({}, ...kinds.map(pathsOf)),
    components: { schemas },
  };
}

function basePath(kind: { group: string; version: string }): string {
  return `${kind.group === "" ? "/api" : "/apis"}/${apiVersionOf(kind)}`;
}

function groupVersionKind({ group, version, kind }: Kind): object {
  return { group, version, kind };
}

function pathsOf(kind: Kind): object {
  const all = `${basePath(kind)}${kind.namespaced ? "/namespaces/{namespace}" : ""}/${kind.plural}`;
  const parameters = ["dryRun", "fieldManager", "fieldValidation"].map((name) => ({
    ...{ name, in: "query", schema: { type: "string" } },
  }));
  const operation = (action: string): object => ({
    parameters,
    responses: {},
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": groupVersionKind(kind),
  });
  const [get, put, patch, remove] = ["get", "put", "patch", "delete"].map(operation);
  return {
    [all]: { get: operation("list"), post: operation("post") },
    [`${all}/{name}`]: { get, put, patch, delete: remove },
  };
}
