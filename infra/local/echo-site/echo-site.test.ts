import { request as plainRequest } from "node:http";
import { request as tlsRequest } from "node:https";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeAuthority } from "../certificates.ts";
import { type EchoSite, startEchoSite } from "./echo-site.ts";

const authority = await makeAuthority();
const options = { host: "127.0.0.9", authority, httpsPort: 0, httpPort: 0 };
let site: EchoSite;
beforeEach(async () => {
  site = await startEchoSite(options);
});
afterEach(() => site.stop());

function ask(
  url: string,
  { ca = "", ...rest }: { ca?: string; method?: string; localAddress?: string; headers?: Record<string, string[]> },
) {
  const send = url.startsWith("https:") ? tlsRequest : plainRequest;
  return new Promise<string>((resolve, reject) => {
    const request = send(url, { ca, agent: false, ...rest }, (response) => resolve(text(response)));
    request.on("error", reject);
    request.end();
  });
}

test("the site tells over https what it saw: address, method, path and every header", async () => {
  const body = await ask(`${site.httpsUrl}/some/page?q=1`, {
    ca: authority.certificate,
    method: "DELETE",
    localAddress: "127.3.4.5",
    headers: { "X-Twice": ["a", "b"] },
  });
  expect(JSON.parse(body)).toMatchObject({
    address: "127.3.4.5",
    method: "DELETE",
    path: "/some/page?q=1",
    headers: { "x-twice": "a, b" },
  });
});

test("the site tells the same over plain http", async () => {
  expect(JSON.parse(await ask(`${site.httpUrl}/`, { localAddress: "127.3.4.6" }))).toMatchObject({
    address: "127.3.4.6",
  });
});

test("a client that does not trust the authority refuses the site", async () => {
  await expect(ask(site.httpsUrl, { ca: (await makeAuthority()).certificate })).rejects.toThrow(/certificate/);
});

test("a port in use is named, and the half-started site is closed", async () => {
  const taken = Number(new URL(site.httpUrl).port);
  await expect(startEchoSite({ ...options, httpPort: taken })).rejects.toMatchObject({
    code: "PortInUse",
    message: `Port ${taken} of 127.0.0.9 is in use: stop what uses it, then start again.`,
  });
});
