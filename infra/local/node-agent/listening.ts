import { readFileSync } from "node:fs";

/**
 * The IPv4 addresses of this machine on which somebody listens: those of another installation's Pods, among others.
 * From the kernel's own table, since a table of ours would not know what others do.
 */
export function listeningAddresses(): Set<string> {
  return parseListening(readFileSync("/proc/net/tcp", "utf8"));
}

const listen = "0A";

/** Parses the text of /proc/net/tcp: `sl local_address rem_address st ...`, addresses in the kernel's byte order. Pure. */
export function parseListening(table: string): Set<string> {
  const rows = table.split("\n").map((line) => line.trim().split(/\s+/));
  const heard = rows.filter(([, , , state]) => state === listen);
  return new Set(heard.map(([, local = ""]) => dotted(local.slice(0, 8))));
}

/** 0100007F is 127.0.0.1: the number lies as it does in memory, and every machine that we run on is little-endian. */
function dotted(hex: string): string {
  return [...Buffer.from(hex, "hex")].reverse().join(".");
}
