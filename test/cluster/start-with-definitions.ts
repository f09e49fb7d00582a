import { setTimeout as sleep } from "node:timers/promises";
import { proxyCrd } from "#shared/model/crd.ts";
import { ApiClient } from "#test/api-client.ts";
import type { ApiAccess } from "./api-server.ts";
import { findBinaries } from "./binaries.ts";
import { type ControlPlane, startControlPlane } from "./control-plane.ts";

const servedMs = 20_000;

/** What it takes of a CustomResourceDefinition. */
interface Definition {
  metadata: { name: string };
  spec: { group: string; names: { plural: string }; versions: { name: string }[] };
}

/** A control plane that knows our kinds. Rejects, with the remedy, where there are no binaries. */
export async function startWithDefinitions(): Promise<ControlPlane> {
  const binaries = findBinaries();
  if (binaries === undefined) throw new Error("there is no kube-apiserver: npm run test:cluster builds it");
  const plane = await startControlPlane({ binaries });
  try {
    await createDefinition(plane, proxyCrd());
    return plane;
  } catch (error) {
    await plane.stop();
    throw error;
  }
}

/** Creates a CustomResourceDefinition and waits until its objects can be listed. Rejects after 20 s. */
async function createDefinition(access: ApiAccess, definition: Definition): Promise<void> {
  const client = new ApiClient(access);
  const { group, names, versions } = definition.spec;
  try {
    const target = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const made = await client.call("POST", target, { body: definition });
    if (made.status !== 201) throw new Error(`POST ${target}: ${made.status} ${made.text}`);
    const list = `/apis/${group}/${versions[0]?.name}/${names.plural}`;
    for (const deadline = Date.now() + servedMs; (await client.call("GET", list)).status !== 200; await sleep(50))
      if (Date.now() > deadline) throw new Error(`${definition.metadata.name} is not served`);
  } finally {
    await client.close();
  }
}
