import { isIPv4, isIPv6 } from "node:net";

/** A block of addresses: the first one as a number, and how many leading bits are fixed. */
export interface Cidr {
  family: 4 | 6;
  base: bigint;
  prefix: number;
}

const width = { 4: 32, 6: 128 } as const;

/** Parses `10.0.0.0/8` or `fc00::/7`. A string is what is wrong with it, for a person. */
export function parseCidr(text: string): Cidr | string {
  const [, address = "", digits = ""] = /^([0-9a-fA-F.:]+)\/(\d{1,3})$/.exec(text) ?? [];
  const family = isIPv4(address) ? 4 : isIPv6(address) ? 6 : undefined;
  if (family === undefined) return "expected a block of addresses like 10.0.0.0/8 or fc00::/7";
  const prefix = Number(digits);
  if (prefix > width[family]) return `expected at most /${width[family]}`;
  const base = family === 4 ? number4(address) : number6(address);
  const block: Cidr = { family, base: (base >> hostBits({ family, prefix })) << hostBits({ family, prefix }), prefix };
  if (block.base !== base) return `has bits set after /${prefix}: write ${formatCidr(block)}`;
  // Squid keeps IPv4 as ::ffff:0:0/96, so that a block which touches that range would mean IPv4 too.
  if (family === 6 && overlaps(block, mappedIPv4))
    return "covers IPv4 inside IPv6: write the IPv4 block, or 2000::/3 for all public IPv6";
  return block;
}

/** The Squid and Kubernetes notation. IPv6 is written out in full, which every parser reads alike. */
export function formatCidr({ family, base, prefix }: Cidr): string {
  const size = family === 4 ? 8 : 16;
  const parts = Array.from({ length: width[family] / size }, (_, index) => {
    const part = (base >> BigInt(width[family] - size * (index + 1))) & ((1n << BigInt(size)) - 1n);
    return family === 4 ? part.toString() : part.toString(16);
  });
  return `${parts.join(family === 4 ? "." : ":")}/${prefix}`;
}

/** The same addresses without a block that lies in another one: of two such, Squid ignores the larger. */
export function disjoint(blocks: Cidr[]): Cidr[] {
  const bySize = [...blocks].sort((a, b) => a.prefix - b.prefix);
  return bySize.filter((block, index) => !bySize.slice(0, index).some((larger) => overlaps(larger, block)));
}

/** What is left of `blocks` without `holes`: no address in a hole, and every other one still there. */
export function subtract(blocks: Cidr[], holes: Cidr[]): Cidr[] {
  return holes.reduce((left, hole) => left.flatMap((block) => without(block, hole)), blocks);
}

function without(block: Cidr, hole: Cidr): Cidr[] {
  if (!overlaps(block, hole)) return [block];
  if (hole.prefix <= block.prefix) return [];
  const prefix = block.prefix + 1;
  const upper = block.base | (1n << hostBits({ family: block.family, prefix }));
  return [block.base, upper].flatMap((base) => without({ family: block.family, base, prefix }, hole));
}

function overlaps(a: Cidr, b: Cidr): boolean {
  if (a.family !== b.family) return false;
  const shift = hostBits({ family: a.family, prefix: Math.min(a.prefix, b.prefix) });
  return a.base >> shift === b.base >> shift;
}

function hostBits({ family, prefix }: Pick<Cidr, "family" | "prefix">): bigint {
  return BigInt(width[family] - prefix);
}

function number4(address: string): bigint {
  return address.split(".").reduce((sum, part) => (sum << 8n) | BigInt(part), 0n);
}

/** `address` is known to be valid, so that `::` stands for exactly the groups that are missing. */
function number6(address: string): bigint {
  const plain = address.replace(/\d+\.\d+\.\d+\.\d+$/, (v4) => {
    const value = number4(v4);
    return `${(value >> 16n).toString(16)}:${(value & 0xffffn).toString(16)}`;
  });
  const [head = [], tail = []] = plain.split("::").map((side) => (side === "" ? [] : side.split(":")));
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => "0");
  return [...head, ...zeros, ...tail].reduce((sum, part) => (sum << 16n) | BigInt(`0x${part}`), 0n);
}

const mappedIPv4: Cidr = { family: 6, base: 0xffffn << 32n, prefix: 96 };
