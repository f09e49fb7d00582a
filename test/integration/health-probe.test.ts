import { createServer } from "node:https";
import tls from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ProbeTarget, probe } from "#functions/health-probe/probe.ts";
import { type AltName, issueCertificate, type KeyedCertificate, makeAuthority } from "#infra/local/certificates.ts";
import { freePort } from "#test/redis.ts";
import { startSquid, type TestSquid } from "#test/squid.ts";

/** A real Squid with a login, and TLS echo sites that only it may reach. */
let squid: TestSquid;
/** Ports: a site that is what it says, one whose certificate names another, one whose authority nobody knows. */
let sites: { good: number; misnamed: number; unknown: number };
const stops: (() => Promise<unknown>)[] = [];

const credentials = { username: "crawler", password: "fleet-password" };
// `openssl passwd -apr1` of the password above.
const passwd = "crawler:$apr1$abcdefgh$MKH/3aDnPUlRxlXfNitRk0\n";

beforeAll(async () => {
  const [authority, stranger] = [await makeAuthority(), await makeAuthority("Stranger")];
  tls.setDefaultCACertificates([...tls.getCACertificates("default"), authority.certificate]);
  const here = [{ dns: "localhost" }, { ip: "127.0.0.1" }];
  sites = {
    good: await startEcho(authority, here),
    misnamed: await startEcho(authority, [{ dns: "other.test" }]),
    unknown: await startEcho(stranger, here),
  };
  squid = await startSquid({ config: squidConfig, files: { passwd } });
  stops.push(() => squid.stop());
});

afterAll(async () => {
  for (const stop of stops) await stop();
});

async function startEcho(authority: KeyedCertificate, altNames: AltName[]): Promise<number> {
  const { certificate, key } = await issueCertificate(authority, { commonName: "echo", altNames });
  const echo = createServer({ cert: certificate, key }, (request, response) => {
    response.writeHead(request.url === "/teapot" ? 418 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify({ ip: request.socket.remoteAddress }));
  });
  const port = await freePort();
  await new Promise<void>((resolve) => echo.listen(port, "127.0.0.1", resolve));
  stops.push(() => new Promise<void>((resolve) => echo.close(() => resolve()).closeAllConnections()));
  return port;
}

function squidConfig({ dir, port }: { dir: string; port: number }): string {
  return `
http_port 127.0.0.1:${port}
pid_filename none
cache deny all
max_filedescriptors 1024
pinger_enable off
access_log none
auth_param basic program /usr/lib/squid/basic_ncsa_auth ${dir}/passwd
acl known proxy_auth REQUIRED
acl echo dst 127.0.0.1/32
acl echo_port port ${Object.values(sites).join(" ")}
http_access deny !known
http_access allow echo echo_port
http_access deny all
`;
}

function send(target: Partial<ProbeTarget>) {
  const signal = new AbortController().signal;
  const defaults = { host: "127.0.0.1", port: squid.port, credentials, timeoutMs: 10_000 };
  return probe({ ...defaults, ...target }, signal);
}

test("a page comes through Squid over verified TLS, by address and by name", async () => {
  for (const host of ["127.0.0.1", "localhost"]) {
    expect(await send({ url: `https://${host}:${sites.good}/` })).toMatchObject({ ok: true, observedIP: "127.0.0.1" });
  }
});

test("without a url Squid's own answer counts", async () => {
  expect(await send({})).toMatchObject({ ok: true });
});

test("wrong or missing credentials fail, with and without a url", async () => {
  for (const url of [undefined, `https://127.0.0.1:${sites.good}/`]) {
    const wrong = { username: "crawler", password: "other" };
    expect(await send({ url, credentials: wrong })).toMatchObject({ ok: false, reason: "ProxyAuthRequired" });
    expect(await send({ url, credentials: undefined })).toMatchObject({ ok: false, reason: "ProxyAuthRequired" });
  }
});

test("what Squid does not let through is a refusal of the proxy", async () => {
  expect(await send({ url: "https://127.0.0.1:9/" })).toMatchObject({
    ok: false,
    reason: "ProxyRefused",
    message: "The proxy answered CONNECT with status 403.",
  });
});

test("a site that cannot be verified is a TLS failure, whoever is to blame", async () => {
  for (const port of [sites.misnamed, sites.unknown]) {
    expect(await send({ url: `https://127.0.0.1:${port}/` })).toMatchObject({ ok: false, reason: "TlsFailed" });
  }
});

test("an unexpected status is told apart from a proxy that fails", async () => {
  const url = `https://127.0.0.1:${sites.good}/teapot`;
  expect(await send({ url })).toMatchObject({ ok: false, reason: "UnexpectedStatus" });
  expect(await send({ url, expectedStatus: 418 })).toMatchObject({ ok: true });
});
