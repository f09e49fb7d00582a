import { once } from "node:events";
import { createServer } from "node:net";

/** A free port of a loopback address. Somebody else may take it before it is used: start the server at once. */
export async function freePort(host = "127.0.0.1"): Promise<number> {
  return await tryListen(host, 0);
}

/** Whether a server could listen there at this moment. Throws what says anything else than "in use". */
export async function isPortFree(host: string, port: number): Promise<boolean> {
  try {
    await tryListen(host, port);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") return false;
    throw error;
  }
}

async function tryListen(host: string, port: number): Promise<number> {
  const server = createServer();
  server.listen(port, host);
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error(`no port of ${host} was given`);
  return address.port;
}
