import { once } from "node:events";
import { createServer } from "node:net";

/** A free port of a loopback address. Somebody else may take it before it is used: start the server at once. */
export async function freePort(host = "127.0.0.1"): Promise<number> {
  const server = createServer();
  server.listen(0, host);
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error(`no port of ${host} was given`);
  return address.port;
}
