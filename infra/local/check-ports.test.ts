import { once } from "node:events";
import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { checkPorts } from "./check-ports.ts";
import { freePort } from "./free-port.ts";

async function occupy(host: string): Promise<number> {
  const server = createServer().listen(0, host);
  onTestFinished(() => {
    server.close();
  });
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port was given");
  return address.port;
}

test("free ports pass, also when another Proxy uses its port on an address of its own", async () => {
  const proxyPort = await occupy("127.63.0.2");
  await expect(checkPorts({ leasePort: await freePort(), proxyPort })).resolves.toBeUndefined();
});

test("a lease port in use is named with the option that gives another", async () => {
  const leasePort = await occupy("127.0.0.1");
  const refused = `Port ${leasePort} of 127.0.0.1, for the lease API, is in use: stop what uses it, or give another with --lease-port.`;
  await expect(checkPorts({ leasePort, proxyPort: await freePort() })).rejects.toThrow(refused);
});

test.each(["0.0.0.0", "::"])("a server on %s that uses the port of the Proxies is found", async (host) => {
  const proxyPort = await occupy(host);
  const refused = `Port ${proxyPort}, for the sample Proxies, is in use on all addresses`;
  await expect(checkPorts({ leasePort: await freePort(), proxyPort })).rejects.toThrow(refused);
});
