const alphabet = "abcdefghijklmnopqrstuvwxyz234567";

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
