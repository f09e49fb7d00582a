import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { createServer, get } from "node:https";
import { expect, test } from "vitest";
import { issueCertificate, makeAuthority } from "./certificates.ts";

const authority = await makeAuthority();

test("an issued certificate names its addresses and is signed by the authority", async () => {
  const issued = await issueCertificate(authority, {
    commonName: "echo",
    altNames: [{ ip: "127.0.0.9" }, { dns: "localhost" }],
  });
  const certificate = new X509Certificate(issued.certificate);
  expect(certificate.subjectAltName).toBe("IP Address:127.0.0.9, DNS:localhost");
  expect(certificate.verify(new X509Certificate(authority.certificate).publicKey)).toBe(true);
});

test("a client that trusts the authority accepts the server, and one that trusts another authority refuses it", async () => {
  const issued = await issueCertificate(authority, { commonName: "local", altNames: [{ ip: "127.0.0.1" }] });
  const server = createServer({ cert: issued.certificate, key: issued.key }, (_request, response) =>
    response.end("hello"),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port was given");
  const status = (ca: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const request = get({ host: "127.0.0.1", port: address.port, ca, agent: false }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      request.on("error", reject);
    });
  try {
    expect(await status(authority.certificate)).toBe(200);
    await expect(status((await makeAuthority("another")).certificate)).rejects.toThrow(
      /self-signed|unable to verify|signature/,
    );
  } finally {
    server.close();
  }
});
