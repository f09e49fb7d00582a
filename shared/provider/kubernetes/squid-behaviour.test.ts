import { createServer, type IncomingMessage } from "node:http";
import { hostname } from "node:os";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { startDns, type TestDns } from "#test/dns.ts";
import { exchange, startSquid, type TestSquid } from "#test/squid.ts";
import { htpasswd } from "./htpasswd.ts";
import { kubernetesSettings } from "./settings.ts";
import { squidConfig } from "./squid-config.ts";

const user = { username: "crawl er", password: 'pä ss:w"or d%' };
const login = `Proxy-Authorization: Basic ${Buffer.from(`${user.username}:${user.password}`).toString("base64")}\r\n`;
const wrongLogin = `Proxy-Authorization: Basic ${Buffer.from("crawl er:wrong").toString("base64")}\r\n`;
const hosts = "127.0.0.1 localhost\n10.0.0.5 private.test\n127.0.0.1 loop.test\n8.8.8.8 public.test\n::1 loop6.test\n";

/** A real Squid with a generated config, bound to loopback as the node agent of `npm start` does it. */
function squid(
  settings: object,
  options: { auth?: boolean; more?: string; dry?: boolean; hosts?: string } = {},
): Promise<TestSquid> {
  return startSquid({
    files: { htpasswd: htpasswd("proxy-x", user), hosts: options.hosts ?? hosts },
    config: ({ dir, port }) => {
      const htpasswdFile = options.auth === false ? undefined : `${dir}/htpasswd`;
      const text = squidConfig({ port, htpasswdFile, settings: kubernetesSettings.parse(settings) });
      const bound = text.replace(`http_port ${port}`, `http_port 127.0.0.1:${port}`);
      // Dry: what would be allowed is answered with 418, so that nothing outside is dialled.
      const dry = bound.replace("http_access allow all", "deny_info 418:ERR_ACCESS_DENIED all\nhttp_access deny all");
      return `${options.dry === true ? dry : bound}hosts_file ${dir}/hosts\n${options.more ?? ""}`;
    },
  });
}

async function status(proxy: TestSquid, request: string): Promise<number> {
  const answer = await exchange(proxy.port, request, /\r\n\r\n/);
  return Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? Number.NaN);
}

function get(target: string, headers = ""): string {
  return `GET http://${target}/ HTTP/1.1\r\nHost: ${target}\r\nConnection: close\r\n${headers}\r\n`;
}

function tunnel(target: string, headers = ""): string {
  return `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${headers}\r\n`;
}

/** First and last addresses of the closed blocks, in every way to write them. */
const closed = [
  "0.0.0.0",
  "0.255.255.255",
  "10.0.0.0",
  "10.255.255.255",
  "100.64.0.1",
  "100.127.255.255",
  "127.0.0.1",
  "127.255.255.255",
  "169.254.0.0",
  "169.254.169.254",
  "172.16.0.0",
  "172.31.255.255",
  "192.0.0.192",
  "192.168.0.1",
  "192.168.255.255",
  "198.18.0.1",
  "198.19.255.255",
  "224.0.0.1",
  "239.255.255.255",
  "240.0.0.1",
  "255.255.255.255",
  "[::]",
  "[::1]",
  "[::7f00:1]",
  "[::ffff:127.0.0.1]",
  "[::ffff:a9fe:a9fe]",
  "[fc00::1]",
  "[fdff::1]",
  "[fe80::1]",
  "[fec0::1]",
  "[ff02::1]",
  "[64:ff9b::a9fe:a9fe]",
  "[64:ff9b:1::1]",
  "[2002:7f00:1::]",
  "[2001::1]",
  "[fd00:ec2::254]",
  "localhost",
  "private.test",
  "loop.test",
  "loop6.test",
];
const oddlyWritten = ["2130706433", "0x7f000001", "127.1", "0177.0.0.1", "LOOP.test."];
/** Neighbours of the closed blocks. */
const open = [
  "1.0.0.1",
  "9.255.255.255",
  "11.0.0.0",
  "100.63.255.255",
  "100.128.0.0",
  "126.255.255.255",
  "128.0.0.1",
  "169.253.255.255",
  "169.255.0.0",
  "172.15.255.255",
  "172.32.0.0",
  "192.167.255.255",
  "192.169.0.0",
  "198.17.255.255",
  "198.20.0.0",
  "223.255.255.255",
  "[2606:4700::1]",
  "[2001:4860:4860::8888]",
  "[64:ff9b::808:808]",
  "[::ffff:8.8.8.8]",
  "public.test",
];

describe("with credentials", () => {
  let proxy: TestSquid;
  beforeAll(async () => {
    proxy = await squid({}, { dry: true });
  });
  afterAll(() => proxy.stop());

  test("a client without or with wrong credentials gets 407, for whatever it asks", async () => {
    for (const headers of ["", wrongLogin]) {
      expect(await status(proxy, get("public.test", headers))).toBe(407);
      expect(await status(proxy, tunnel("public.test:443", headers))).toBe(407);
      expect(await status(proxy, get("127.0.0.1", headers))).toBe(407);
    }
  });

  test("a client with the right credentials goes through", async () => {
    expect(await status(proxy, get("public.test", login))).toBe(418);
    expect(await status(proxy, tunnel("public.test:443", login))).toBe(418);
  });
});

describe("by default", () => {
  let proxy: TestSquid;
  beforeAll(async () => {
    proxy = await squid({}, { auth: false, dry: true });
  });
  afterAll(() => proxy.stop());

  test.each(closed)("%s is closed", async (host) => {
    expect(await status(proxy, get(host))).toBe(403);
    expect(await status(proxy, tunnel(`${host}:443`))).toBe(403);
  });

  test.each(oddlyWritten)("%s is not a way to loopback", async (host) => {
    // Refused as an address, or as a name that does not resolve.
    expect([403, 503]).toContain(await status(proxy, get(host)));
    expect([403, 503]).toContain(await status(proxy, tunnel(`${host}:443`)));
  });

  test.each(open)("%s is open", async (host) => {
    expect(await status(proxy, get(host))).toBe(418);
    expect(await status(proxy, tunnel(`${host}:443`))).toBe(418);
  });

  test("CONNECT opens port 443 alone, GET the web's ports and high ones", async () => {
    for (const port of [22, 25, 80, 8443]) expect(await status(proxy, tunnel(`public.test:${port}`))).toBe(403);
    for (const port of [22, 25, 110, 1024]) expect(await status(proxy, get(`public.test:${port}`))).toBe(403);
    for (const port of [80, 443, 1025, 8080]) expect(await status(proxy, get(`public.test:${port}`))).toBe(418);
  });

  test("other schemes and Squid's own pages are refused", async () => {
    const own = ["squid-internal-mgr/menu", "squid-internal-static/icons/SN.png", "squid-internal-dynamic/netdb"];
    const urls = ["ftp://public.test/", "https://public.test/", "urn:isbn:1", "cache_object://127.0.0.1/info"];
    for (const url of [...urls, ...own.map((page) => `http://egress-proxy:${proxy.port}/${page}`)]) {
      const answer = await status(proxy, `GET ${url} HTTP/1.1\r\nHost: egress-proxy\r\nConnection: close\r\n\r\n`);
      expect([400, 403, 503], url).toContain(answer);
    }
  });

  test("an error page names neither the host nor the version", async () => {
    const page = await exchange(proxy.port, get("127.0.0.1"));
    expect(page).toContain("403");
    expect(page).not.toContain(hostname());
    expect(page).not.toMatch(/squid\/\d/i);
  });
});

test("a client from elsewhere is refused", async () => {
  const proxy = await squid({ allowSources: ["10.0.0.0/8"] }, { auth: false, dry: true });
  onTestFinished(() => proxy.stop());
  expect(await status(proxy, get("public.test"))).toBe(403);
});

describe("with a site on loopback opened", () => {
  const seen: IncomingMessage[] = [];
  const site = createServer((request, response) => {
    seen.push(request);
    response.end("hello");
  });
  let proxy: TestSquid;
  let port = 0;
  beforeAll(async () => {
    await new Promise<void>((resolve) => site.listen(0, "0.0.0.0", resolve));
    const address = site.address();
    port = typeof address === "object" && address !== null ? address.port : 0;
    const opened = [`127.0.0.9/32:${port}`, "127.0.0.7/32:443"];
    proxy = await squid({ allowDestinations: opened, connectPorts: [443, port] }, { auth: false });
  });
  afterAll(async () => {
    await proxy.stop();
    site.close();
  });

  test("that address on that port answers, to GET and to CONNECT", async () => {
    expect(await exchange(proxy.port, get(`127.0.0.9:${port}`))).toMatch(/^HTTP\/1\.1 200[^]*hello$/);
    expect(await status(proxy, tunnel(`127.0.0.9:${port}`))).toBe(200);
  });

  test("the address on another port, and another address on the port, stay closed", async () => {
    for (const target of [`127.0.0.9:443`, `127.0.0.7:${port}`, `127.0.0.8:${port}`, `127.0.0.10:${port}`]) {
      expect(await status(proxy, get(target)), target).toBe(403);
      expect(await status(proxy, tunnel(target)), target).toBe(403);
    }
  });

  test("the site sees a plain request, the client a plain answer", async () => {
    const answer = await exchange(
      proxy.port,
      get(`127.0.0.9:${port}`, "User-Agent: me\r\nX-Forwarded-For: 1.2.3.4\r\n"),
    );
    const { connection: _, ...headers } = seen.at(-1)?.headers ?? {};
    expect(headers).toEqual({ host: `127.0.0.9:${port}`, "user-agent": "me" });
    expect(answer).not.toMatch(/^(via|x-cache|x-cache-lookup|cache-status|age|warning|server):/im);
  });

  test("a path of Squid's own icons is the site's", async () => {
    const request = get(`127.0.0.9:${port}`).replace("/ HTTP/", "/squid-internal-static/icons/SN.png HTTP/");
    expect(await exchange(proxy.port, request)).toMatch(/hello$/);
  });

  test("a client's own Cache-Control reaches the site", async () => {
    await exchange(proxy.port, get(`127.0.0.9:${port}`, "Cache-Control: no-cache\r\n"));
    expect(seen.at(-1)?.headers["cache-control"]).toBe("no-cache");
  });
});

// Port 53 is for root alone.
describe.runIf(process.getuid?.() === 0)("with a hostile name server", () => {
  const nameServer = "127.83.17.5";
  const names: Record<string, string[] | undefined> = {
    "both.test": ["127.0.0.9", "127.0.0.8"],
    "opened.test": ["127.0.0.9"],
    "public.test": ["8.8.8.8", "10.0.0.5"],
    "late.test": undefined,
  };
  let proxy: TestSquid;
  let dns: TestDns;
  beforeAll(async () => {
    dns = await startDns(nameServer, (name) => names[name]);
    const settings = { allowDestinations: ["127.0.0.9/32:8443"], connectPorts: [443, 8443] };
    proxy = await squid(settings, { auth: false, dry: true, more: `dns_nameservers ${nameServer}\n`, hosts: "" });
  });
  afterAll(async () => {
    await proxy.stop();
    await dns.stop();
  });

  test("a name that leads to the opened address alone goes through", async () => {
    expect(await status(proxy, tunnel("opened.test:8443"))).toBe(418);
  });

  test("a name that also leads to a closed address is refused", async () => {
    for (const target of ["both.test:8443", "public.test:443", "opened.test:443"]) {
      expect(await status(proxy, tunnel(target)), target).toBe(403);
      expect(await status(proxy, get(target)), target).toBe(403);
    }
  });

  test("a name that resolves only after the check is refused, and looked up once", async () => {
    expect(await status(proxy, tunnel("late.test:443"))).toBe(503);
    names["late.test"] = ["127.0.0.1"];
    expect(await status(proxy, tunnel("late.test:443"))).toBe(503);
  });
});
