import { createHash, randomBytes } from "node:crypto";
import { CoreV1Api, type V1ConfigMap, type V1Secret } from "@kubernetes/client-node";
import { Failure, isNotFound, toFailure } from "#shared/errors/failure.ts";
import { base32 } from "#shared/model/base32.ts";
import { installationObjectName as name } from "#shared/model/names.ts";
import type { ClusterConnection } from "./connection.ts";
import type { ClusterCall } from "./deadline.ts";

/** Who we are towards backends, and the key of our spec hashes. */
export interface Installation {
  /** 10 characters of base32; on every mark. */
  id: string;
  hashKey: Uint8Array;
}

export interface InstallationOptions {
  connection: ClusterConnection;
  /** Of this release. */
  namespace: string;
  releaseName: string;
  /** Overrides the derived id. */
  installationID?: string;
}

const keyField = "specHashKey";
const idField = "installationID";
const keyBytes = 32;

/**
 * Reads who we are, and records it the first time. A recorded id wins over a derived one, so that a reinstall finds its
 * instances again. Throws Permanent `InstallationChanged` when a setting contradicts the record: instances that carry
 * the old id would be abandoned.
 */
export async function loadInstallation(options: InstallationOptions, call: ClusterCall): Promise<Installation> {
  const core = options.connection.api(CoreV1Api, call);
  return { id: await loadID(core, options), hashKey: await loadKey(core, options.namespace) };
}

async function loadID(core: CoreV1Api, options: InstallationOptions): Promise<string> {
  const { namespace, installationID } = options;
  const recorded = await orUndefined(core.readNamespacedConfigMap({ namespace, name }));
  const id = recorded?.data?.[idField];
  if (id !== undefined) return agreed(id, installationID);
  const wanted = installationID ?? (await deriveID(core, options));
  const metadata = { name, annotations: { "helm.sh/resource-policy": "keep" } };
  try {
    const body: V1ConfigMap = recorded ?? { metadata };
    body.data = { ...body.data, [idField]: wanted };
    if (recorded === undefined) await core.createNamespacedConfigMap({ namespace, body });
    else await core.replaceNamespacedConfigMap({ namespace, name, body });
    return wanted;
  } catch (error) {
    if (!wasFaster(error)) throw error;
    const theirs = await core.readNamespacedConfigMap({ namespace, name });
    return agreed(theirs.data?.[idField] ?? wanted, installationID);
  }
}

function agreed(recorded: string, setting: string | undefined): string {
  if (setting === undefined || setting === recorded) return recorded;
  const message = `INSTALLATION_ID is ${setting}, but ConfigMap ${name} says ${recorded}: instances carry the recorded id. Remove the setting.`;
  throw new Failure({ class: "Permanent", code: "InstallationChanged", message });
}

async function deriveID(core: CoreV1Api, { namespace, releaseName }: InstallationOptions): Promise<string> {
  const cluster = await core.readNamespace({ name: "kube-system" });
  const digest = createHash("sha256").update(`${cluster.metadata?.uid}/${namespace}/${releaseName}`).digest();
  return base32(digest).slice(0, 10);
}

async function loadKey(core: CoreV1Api, namespace: string): Promise<Uint8Array> {
  const recorded = await orUndefined(core.readNamespacedSecret({ namespace, name }));
  if (recorded !== undefined) return keyOf(recorded, namespace);
  const made = randomBytes(keyBytes);
  const metadata = { name, annotations: { "helm.sh/resource-policy": "keep" } };
  try {
    await core.createNamespacedSecret({ namespace, body: { metadata, data: { [keyField]: made.toString("base64") } } });
    return made;
  } catch (error) {
    if (!wasFaster(error)) throw error;
    return keyOf(await core.readNamespacedSecret({ namespace, name }), namespace);
  }
}

function keyOf(secret: V1Secret, namespace: string): Uint8Array {
  const key = Buffer.from(secret.data?.[keyField] ?? "", "base64");
  if (key.length === keyBytes) return key;
  const message = `Secret ${namespace}/${name} has no ${keyField} of ${keyBytes} bytes: delete it, and a new key is made (every instance is then replaced).`;
  throw new Failure({ class: "Permanent", code: "NoSpecHashKey", message });
}

/** Another process of ours has recorded it in the meantime. */
function wasFaster(error: unknown): boolean {
  const { code } = toFailure(error);
  return code === "AlreadyExists" || code === "Conflict";
}

async function orUndefined<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
