import type { ClusterCall } from "#shared/cluster/deadline.ts";
import type { SecretReader } from "#shared/cluster/secrets.ts";
import { Failure, toFailure } from "#shared/errors/failure.ts";
import type { Proxy } from "#shared/model/proxy.ts";
import type { Credentials } from "#shared/model/registry-record.ts";

/** What the Secrets that a Proxy names hold. */
export interface SecretValues {
  auth: Credentials | undefined;
  cloudInit: Uint8Array | undefined;
}

/**
 * Reads the Secrets that a Proxy names. One that is missing or may not be read is returned as a failure, since an
 * instance that runs does not need it; a read that may well work the next time is thrown.
 */
export async function readSecretValues(
  proxy: Proxy,
  secrets: Pick<SecretReader, "read">,
  call: ClusterCall,
): Promise<SecretValues | { failure: Failure }> {
  const { auth, cloudInit } = proxy.spec;
  const read = async (name: string): Promise<Secret> => ({
    name: `${proxy.metadata.namespace}/${name}`,
    data: (await secrets.read(proxy.metadata.namespace, name, call))?.data,
  });
  try {
    return {
      auth: auth && credentialsOf(await read(auth.secretRef.name)),
      cloudInit: cloudInit?.secretKeyRef
        ? valueOf(await read(cloudInit.secretKeyRef.name), cloudInit.secretKeyRef.key)
        : cloudInit?.inline === undefined
          ? undefined
          : Buffer.from(cloudInit.inline),
    };
  } catch (error) {
    const failure = toFailure(error);
    if (failure.code === secretMissing || failure.class === "Permanent") return { failure };
    throw error;
  }
}

/** Code of the failure for a Secret or key that is not there. The watcher tells when it is. */
const secretMissing = "SecretMissing";

interface Secret {
  name: string;
  data: Record<string, Uint8Array> | undefined;
}

function credentialsOf(secret: Secret): Credentials {
  const text = (key: string): string => Buffer.from(valueOf(secret, key)).toString("utf8");
  return { username: text("username"), password: text("password") };
}

function valueOf({ name, data }: Secret, key: string): Uint8Array {
  const value = data?.[key];
  if (value !== undefined && value.length > 0) return value;
  const message =
    data === undefined ? `Secret ${name} does not exist.` : `Secret ${name} has no key "${key}", or it is empty.`;
  throw new Failure({ class: "Transient", code: secretMissing, message });
}
