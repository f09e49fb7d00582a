import { createHash } from "node:crypto";

const alphabet = "abcdefghijklmnopqrstuvwxyz234567";

/**
 * The name of one incarnation on its backend: `proxy-` and 16 base32 characters. A repeated create finds the same
 * instance by it, and no other incarnation, Proxy or installation ever has it.
 */
export function instanceName(owner: { installation: string; uid: string; incarnation: number }): string {
  const text = `${owner.installation}/${owner.uid}/${owner.incarnation}`;
  return `proxy-${base32(createHash("sha256").update(text).digest()).slice(0, 16)}`;
}

/** Lower-case base32 (RFC 4648) without padding; a last group of fewer than five bits is dropped. */
export function base32(bytes: Uint8Array): string {
  let text = "";
  let buffered = 0;
  let bits = 0;
  for (const byte of bytes) {
    buffered = (buffered << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += alphabet.charAt((buffered >> bits) & 31);
    }
    buffered &= (1 << bits) - 1;
  }
  return text;
}
