import { once } from "node:events";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { listeningAddresses, parseListening } from "./listening.ts";

test("only what listens counts, not a connection", () => {
  const table = `  sl  local_address rem_address   st tx_queue rx_queue
   0: 0102407F:0C38 00000000:0000 0A 00000000:00000000
   1: 0100007F:9161 0100007F:935C 06 00000000:00000000
`;
  expect([...parseListening(table)]).toEqual(["127.64.2.1"]);
});

test("an address is found while a server listens on it", async () => {
  const host = "127.0.201.7";
  const server = createServer().listen(0, host);
  await once(server, "listening");
  expect(listeningAddresses()).toContain(host);
  server.close();
  await once(server, "close");
  expect(listeningAddresses()).not.toContain(host);
});
