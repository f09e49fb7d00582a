import { setTimeout as sleep } from "node:timers/promises";
import { CustomObjectsApi, PatchStrategy, setHeaderOptions } from "@kubernetes/client-node";
import type { ClusterConnection } from "#shared/cluster/connection.ts";
import { Failure } from "#shared/errors/failure.ts";
import { proxyCrd } from "#shared/model/crd.ts";
import { apiVersion } from "#shared/model/names.ts";
import { describeRight, missingRights, type Right } from "./rights.ts";

const servedMs = 30_000;
const kind = { group: "apiextensions.k8s.io", version: "v1", plural: "customresourcedefinitions" };

/**
 * Makes the cluster know Proxies: applies the definition on the server, never by force, and waits until it is served. Where
 * we may not and there is one already, that one has to do, and the answer is false. Rejects with a Failure that says what to do.
 */
export async function applyDefinition(
  connection: ClusterConnection,
  { say, signal }: { say: (line: string) => void; signal: AbortSignal },
): Promise<boolean> {
  const body = proxyCrd();
  const { name } = body.metadata;
  const right = (verb: string): Right => ({ verb, group: kind.group, resource: kind.plural, name });
  const missing = await missingRights(connection, [right("create"), right("patch")], signal);
  if (missing.length > 0) {
    if (await isServed(connection, signal)) {
      say(`CustomResourceDefinition ${name}: stays as it is, since you may not change it`);
      return false;
    }
    throw new Failure({
      class: "Permanent",
      code: "NoDefinition",
      message: `The cluster does not know Proxies, and you lack the right to ${missing.map(describeRight).join(", ")}: have charts/egress-proxies/crds applied by somebody who has it.`,
    });
  }
  const asApply = setHeaderOptions("Content-Type", PatchStrategy.ServerSideApply);
  const api = connection.api(CustomObjectsApi, { signal });
  try {
    await api.patchClusterCustomObject({ ...kind, name, body, fieldManager: "egress-proxies-npm-start" }, asApply);
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "Conflict") throw error;
    const message = `The cluster has another CustomResourceDefinition ${name}, and it is somebody else's: ${error.message}. To put ours in its place: kubectl apply --server-side --force-conflicts -f charts/egress-proxies/crds`;
    throw new Failure({ class: "Permanent", code: "OtherDefinition", message, cause: error });
  }
  for (const deadline = performance.now() + servedMs; !(await isServed(connection, signal)); ) {
    if (performance.now() > deadline)
      throw new Failure({ class: "Transient", code: "NotServed", message: `${name} is not served` });
    await sleep(200, undefined, { signal });
  }
  say(`CustomResourceDefinition ${name}: applied`);
  return true;
}

/** Whether the server knows Proxies, whether or not we may see them. */
async function isServed(connection: ClusterConnection, signal: AbortSignal): Promise<boolean> {
  try {
    // Discovery, which everybody may read.
    await connection.json({ path: `/apis/${apiVersion}`, query: {} }, { signal });
    return true;
  } catch (error) {
    if (error instanceof Failure && error.code === "NotServed") return false;
    throw error;
  }
}
