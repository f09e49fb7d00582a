import { AuthorizationV1Api } from "@kubernetes/client-node";
import { readGrants } from "#infra/cluster/grants.ts";
import type { ClusterConnection } from "#shared/cluster/connection.ts";
import { group } from "#shared/model/names.ts";

/** One thing that a user may do, or not. */
export interface Right {
  verb: string;
  group: string;
  /** With its subresource: `pods/binding`. */
  resource: string;
  /** Undefined: any, or none yet. */
  name?: string | undefined;
  /** Undefined: of the whole cluster. */
  namespace?: string | undefined;
}

export interface Namespaces {
  product: string;
  samples: string;
}

/** What the processes do (rbac.yaml), in these namespaces, and what `npm start` does beside them. */
export async function wantedRights({ product, samples }: Namespaces, withAgent: boolean): Promise<Right[]> {
  const places = new Map([
    ["egress-proxies", product],
    ["crawl", samples],
  ]);
  const ofProduct = (await readGrants()).map(({ verb, group, resource, name, namespace: place = "" }) => {
    const namespace = places.get(place);
    return { verb, group, resource, name, namespace };
  });
  const inSamples = (verb: string, resource: string): Right => ({ verb, group: "", resource, namespace: samples });
  const ofStart: Right[] = [
    { verb: "list", group: "", resource: "nodes" },
    { verb: "create", group, resource: "proxies", namespace: samples },
  ];
  const ofAgent = [
    inSamples("list", "pods"),
    inSamples("watch", "pods"),
    inSamples("create", "pods/binding"),
    inSamples("patch", "pods/status"),
    inSamples("create", "serviceaccounts"),
  ];
  return [...ofProduct, ...ofStart, ...(withAgent ? ofAgent : [])];
}

/** Those that whoever the connection speaks for does not have, as the server itself answers. Rejects with a Failure. */
export async function missingRights(
  connection: Pick<ClusterConnection, "api">,
  rights: readonly Right[],
  signal: AbortSignal,
): Promise<Right[]> {
  const api = connection.api(AuthorizationV1Api, { signal });
  const isMissing = await Promise.all(
    rights.map(async ({ verb, group, resource: full, name, namespace }) => {
      const [resource = "", subresource = ""] = full.split("/");
      const attributes = { verb, group, resource, subresource, name: name ?? "", namespace: namespace ?? "" };
      const body = { spec: { resourceAttributes: attributes } };
      return (await api.createSelfSubjectAccessReview({ body })).status?.allowed !== true;
    }),
  );
  return rights.filter((_, index) => isMissing[index]);
}

/** For a person, e.g. `create pods/binding in namespace crawl`. */
export function describeRight({ verb, group, resource, name, namespace }: Right): string {
  const what = `${verb} ${resource}${group === "" ? "" : `.${group}`}${name === undefined ? "" : ` ${name}`}`;
  return namespace === undefined ? what : `${what} in namespace ${namespace}`;
}
