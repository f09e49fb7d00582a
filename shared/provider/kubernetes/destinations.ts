import { type Cidr, disjoint, parseCidr, subtract } from "./cidr.ts";

/**
 * Where no proxy goes unless it is opened: what is not on the public internet. A cloud's metadata service and the
 * cluster's own Services lie in these ranges.
 */
const closedIPv4 = [
  "0.0.0.0/8", // this host
  "10.0.0.0/8", // private
  "100.64.0.0/10", // carrier NAT; some clouds keep their metadata service here
  "127.0.0.0/8", // loopback
  "169.254.0.0/16", // link-local, metadata
  "172.16.0.0/12", // private
  "192.0.0.0/24", // protocol assignments
  "192.168.0.0/16", // private
  "198.18.0.0/15", // benchmarks
  "224.0.0.0/3", // multicast, reserved, broadcast
];

const closedIPv6 = [
  "::/96", // unspecified, loopback, IPv4-compatible
  "64:ff9b:1::/48", // NAT64 inside one network
  "2001::/32", // Teredo
  "2002::/16", // 6to4: another way to write an IPv4 address
  "fc00::/7", // private
  "fe80::/10", // link-local
  "fec0::/10", // the former private range
  "ff00::/8", // multicast
];

/** NAT64 gateways reach IPv4 through this prefix, private addresses included. */
const nat64 = 0x0064_ff9bn << 96n;

function inNat64({ base, prefix }: Cidr): Cidr {
  return { family: 6, base: nat64 | base, prefix: prefix + 96 };
}

const closed: Cidr[] = [...closedIPv4, ...closedIPv6].map(cidr);
const closedEverywhere = [...closed, ...closed.filter(({ family }) => family === 4).map(inNat64)];

/** A port and what is closed on it. */
export interface ClosedOnPort {
  port: number;
  blocks: Cidr[];
}

/**
 * What is closed on all ports but the listed ones, and what is closed on each of those. An opening is cut out of the
 * closed blocks instead of being allowed: a name with two addresses, one of them opened, would else lead to the other.
 */
export function closedDestinations(opened: { cidr: Cidr; port: number }[]): { ports: ClosedOnPort[]; others: Cidr[] } {
  const ports = [...new Set(opened.map(({ port }) => port))].sort((a, b) => a - b);
  return {
    ports: ports.map((port) => {
      const holes = opened.filter((opening) => opening.port === port).map((opening) => opening.cidr);
      return { port, blocks: subtract(closedEverywhere, disjoint(holes)) };
    }),
    others: closedEverywhere,
  };
}

function cidr(text: string): Cidr {
  const parsed = parseCidr(text);
  if (typeof parsed === "string") throw new Error(`${text}: ${parsed}`);
  return parsed;
}
