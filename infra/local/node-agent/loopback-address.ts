import { createHash } from "node:crypto";

/**
 * The loopback address of a Pod in 127.64.0.0/10: the one it has, else one that follows from its uid, so that it is the
 * same again after a restart of the agent. Never one of `taken`. (127.0.0.0/16 is left to everybody else.)
 */
export function chooseAddress(uid: string, current: string | undefined, taken: ReadonlySet<string>): string {
  if (current !== undefined && isOurs(current) && !taken.has(current)) return current;
  const start = createHash("sha256").update(uid).digest().readUInt32BE();
  for (let step = 0; step < size; step += 1) {
    const address = addressAt((start + step) % size);
    if (!taken.has(address)) return address;
  }
  throw new Error("all loopback addresses are taken");
}

// 64 networks of 254 times 254: no octet is 0 or 255, which some programs take for a network or broadcast address.
const size = 64 * 254 * 254;

function addressAt(index: number): string {
  const [second, rest] = [Math.floor(index / (254 * 254)), index % (254 * 254)];
  return `127.${64 + second}.${1 + Math.floor(rest / 254)}.${1 + (rest % 254)}`;
}

function isOurs(address: string): boolean {
  const [first, second, ...others] = address.split(".").map(Number);
  return first === 127 && second !== undefined && second >= 64 && second < 128 && others.length === 2;
}
