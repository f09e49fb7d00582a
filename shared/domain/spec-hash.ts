import { createHmac } from "node:crypto";
import type { ProxySpec } from "#shared/model/proxy-spec.ts";
import type { Credentials } from "#shared/model/registry-record.ts";

/** Raised when the input of the hash changes. An instance of another version is never replaced; re-stamping is to come. */
export const specHashVersion = "v1";

export interface HashedSpec {
  placement: ProxySpec["placement"];
  /** Resolved: the bytes themselves, wherever they came from. */
  cloudInit: Uint8Array | undefined;
  port: number;
  auth: Credentials | undefined;
}

/**
 * Fingerprint of everything that an instance is made from: a change means replacement. Only these fields, in this
 * order, absent ones as null, so that neither the order of a user's YAML nor a new default replaces a fleet.
 * An HMAC, since it covers secrets and is stored where anyone may read it.
 */
export function specHash(spec: HashedSpec, key: Uint8Array): string {
  const { placement } = spec;
  const canonical = JSON.stringify([
    ["region", placement?.region],
    ["zone", placement?.zone],
    ["machineType", placement?.machineType],
    ["image", placement?.image],
    ["cloudInit", spec.cloudInit && Buffer.from(spec.cloudInit).toString("base64")],
    ["port", spec.port],
    ["auth", spec.auth && [spec.auth.username, spec.auth.password]],
  ]);
  return createHmac("sha256", key).update(specHashVersion).update(canonical).digest("hex").slice(0, 32);
}
