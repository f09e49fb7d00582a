import { createSocket } from "node:dgram";

export interface TestDns {
  /** Names asked for so far, in order. */
  readonly asked: string[];
  stop(): Promise<void>;
}

/**
 * A name server on port 53 of a loopback address (needs root), as hostile as `answer` makes it: IPv4 addresses for a
 * name, or undefined for a server failure. Asked for anything but A records it has none.
 */
export async function startDns(address: string, answer: (name: string) => string[] | undefined): Promise<TestDns> {
  const asked: string[] = [];
  const socket = createSocket("udp4");
  socket.on("message", (query, from) => {
    const { name, type, end } = question(query);
    if (type === 1) asked.push(name);
    const addresses = type === 1 ? answer(name) : [];
    const header = Buffer.from(query.subarray(0, 12));
    header.writeUInt16BE(addresses === undefined ? 0x8182 : 0x8180, 2);
    header.writeUInt16BE(addresses?.length ?? 0, 6);
    header.writeUInt32BE(0, 8);
    // Name by pointer to the question, type A, class IN, a lifetime of 0 s, four bytes.
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
    const records = (addresses ?? []).map((one) => Buffer.concat([record, Buffer.from(one.split(".").map(Number))]));
    socket.send(Buffer.concat([header, query.subarray(12, end), ...records]), from.port, from.address);
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject).bind(53, address, resolve);
  });
  return { asked, stop: () => new Promise((resolve) => socket.close(() => resolve())) };
}

function question(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join("."), type: query.readUInt16BE(at + 1), end: at + 5 };
}
