import { createServer, type Socket } from "node:net";

export interface RawServer {
  port: number;
  /** Connections that were ever made, and that are open now. */
  connections(): { made: number; open: number };
  stop(): Promise<void>;
}

/** A TCP server on a free loopback port that treats each connection as the test says: silence, garbage, half answers. */
export async function startRawServer(treat: (socket: Socket) => void): Promise<RawServer> {
  const open = new Set<Socket>();
  let made = 0;
  const server = createServer((socket) => {
    made += 1;
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    socket.on("error", () => undefined); // the other side may end as it likes
    treat(socket);
    socket.resume(); // an end that nobody reads is never seen
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port was given");
  return {
    port: address.port,
    connections: () => ({ made, open: open.size }),
    stop: async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
