import { createHash } from "node:crypto";
import { base32 } from "#shared/model/base32.ts";

/**
 * The name of one incarnation on its backend: `proxy-` and 16 base32 characters. A repeated create finds the same
 * instance by it, and no other incarnation, Proxy or installation ever has it.
 */
export function instanceName(owner: { installation: string; uid: string; incarnation: number }): string {
  const text = `${owner.installation}/${owner.uid}/${owner.incarnation}`;
  return `proxy-${base32(createHash("sha256").update(text).digest()).slice(0, 16)}`;
}
