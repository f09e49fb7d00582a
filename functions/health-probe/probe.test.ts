import type { Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { type RawServer, startRawServer } from "#test/raw-server.ts";
import { freePort } from "#test/redis.ts";
import { type ProbeTarget, probe } from "./probe.ts";

const servers: RawServer[] = [];
const never = new AbortController().signal;
const credentials = { username: "crawler", password: "hunter2:with-colon" };

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

async function start(treat: (socket: Socket) => void): Promise<RawServer> {
  const server = await startRawServer(treat);
  servers.push(server);
  return server;
}

/** A proxy that answers every request with these bytes, and keeps what it was sent. */
async function startProxy(answer: string | Buffer, { end = false } = {}): Promise<RawServer & { seen: () => string }> {
  let seen = "";
  const server = await start((socket) => {
    socket.on("data", (data) => {
      seen += data.toString("latin1");
      if (end) socket.end(answer);
      else socket.write(answer);
    });
  });
  return { ...server, seen: () => seen };
}

async function closed(server: RawServer): Promise<void> {
  await expect.poll(() => server.connections(), { timeout: 20_000, interval: 2 }).toEqual({ made: 1, open: 0 });
}

function send(port: number, target: Partial<ProbeTarget> = {}, signal = never) {
  return probe({ host: "127.0.0.1", port, timeoutMs: 5_000, ...target }, signal);
}

/** Probes, and sees to it that nothing secret and nothing of the peer's is said, and that no socket stays open. */
async function fails(server: RawServer, target: Partial<ProbeTarget> = {}) {
  const result = await send(server.port, { credentials, ...target });
  expect(result.ok).toBe(false);
  expect(JSON.stringify(result)).not.toMatch(/hunter2|evil|Basic/);
  await closed(server);
  return result.reason;
}

const page = (body: string, head = ""): string =>
  `HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${head}\r\n${body}`;
const httpUrl = "http://echo.test/path?q=1#hash";
const httpsUrl = "https://echo.test/";

test("an http url is fetched in absolute form, with the proxy's credentials", async () => {
  const proxy = await startProxy(page('{"ip":"203.0.113.7"}'));
  expect(await send(proxy.port, { url: httpUrl, credentials })).toEqual({
    ok: true,
    reason: "Answered",
    message: "The site answers through the proxy with status 200.",
    observedIP: "203.0.113.7",
    latencyMs: expect.any(Number),
  });
  const basic = Buffer.from("crawler:hunter2:with-colon").toString("base64");
  expect(proxy.seen()).toMatch(/^GET http:\/\/echo\.test\/path\?q=1 HTTP\/1\.1\r\n/);
  expect(proxy.seen()).toContain("host: echo.test\r\n");
  expect(proxy.seen()).toContain(`proxy-authorization: Basic ${basic}\r\n`);
  await closed(proxy);
});

test("without a url any answer of the proxy to a CONNECT counts, a refusal too", async () => {
  for (const status of ["200 OK", "403 Forbidden", "502 Bad Gateway"]) {
    const proxy = await startProxy(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\n\r\n`);
    expect(await send(proxy.port)).toMatchObject({ ok: true, reason: "Answered", message: "The proxy answers." });
    expect(proxy.seen()).toMatch(/^CONNECT 127\.0\.0\.1:1 HTTP\/1\.1\r\n/);
    await closed(proxy);
  }
});

test("a proxy that wants other credentials fails in every kind of probe", async () => {
  for (const url of [undefined, httpUrl, httpsUrl]) {
    const proxy = await startProxy("HTTP/1.1 407 evil\r\ncontent-length: 0\r\n\r\n");
    expect(await fails(proxy, { url })).toBe("ProxyAuthRequired");
  }
});

test("a CONNECT that is refused is not the site's answer", async () => {
  for (const status of [403, 503, 302, 101]) {
    const proxy = await startProxy(`HTTP/1.1 ${status} evil\r\ncontent-length: 4\r\n\r\nevil`);
    expect(await fails(proxy, { url: httpsUrl })).toBe("ProxyRefused");
  }
});

test("nobody listening, and nobody answering the connection, are told apart", async () => {
  expect(await send(await freePort(), { url: httpUrl })).toMatchObject({ ok: false, reason: "ConnectRefused" });
  expect(await send(1, { url: httpUrl, host: "no-such-host.invalid" })).toMatchObject({ reason: "AddressNotFound" });
});

test("a proxy that takes the connection and never answers times out in every kind of probe", async () => {
  for (const url of [undefined, httpUrl, httpsUrl]) {
    const proxy = await start(() => undefined);
    expect(await fails(proxy, { url, timeoutMs: 50 })).toBe("Timeout");
  }
});

test("a tunnel that stays silent times out in the handshake", async () => {
  const proxy = await startProxy("HTTP/1.1 200 OK\r\n\r\n");
  const result = await send(proxy.port, { url: httpsUrl, timeoutMs: 100 });
  // The stub answers the TLS hello with an HTTP answer, too: that is garbage to TLS, or too late.
  expect(["TlsFailed", "Timeout"]).toContain(result.reason);
  const silent = await start((socket) => socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\n\r\n")));
  expect(await fails(silent, { url: httpsUrl, timeoutMs: 100 })).toBe("Timeout");
});

test("garbage is a bad answer, wherever it comes", async () => {
  for (const url of [undefined, httpUrl, httpsUrl]) {
    expect(await fails(await startProxy("evil evil evil\r\n\r\n"), { url })).toBe("BadAnswer");
  }
  const tunnel = await startProxy("HTTP/1.1 200 OK\r\n\r\nevil bytes before any handshake");
  expect(await fails(tunnel, { url: httpsUrl })).toBe("TlsFailed");
});

test("headers are read up to 16 KiB", async () => {
  for (const url of [undefined, httpUrl, httpsUrl]) {
    const proxy = await startProxy(`HTTP/1.1 200 OK\r\n${`evil: ${"x".repeat(1000)}\r\n`.repeat(20)}\r\n`);
    expect(await fails(proxy, { url })).toBe("BadAnswer");
  }
});

test("headers that drip for ever end with the deadline", async () => {
  const proxy = await start((socket) => {
    socket.write("HTTP/1.1 200 OK\r\n");
    const drip = setInterval(() => socket.write("evil: 1\r\n"), 10);
    socket.once("close", () => clearInterval(drip));
  });
  expect(await fails(proxy, { url: httpUrl, timeoutMs: 100 })).toBe("Timeout");
});

test("a body that drips for ever ends with the deadline", async () => {
  const proxy = await start((socket) => {
    socket.write("HTTP/1.1 200 OK\r\n\r\n");
    const drip = setInterval(() => socket.write("e"), 10);
    socket.once("close", () => clearInterval(drip));
  });
  expect(await fails(proxy, { url: httpUrl, timeoutMs: 100 })).toBe("Timeout");
});

test("an endless body is cut off at 64 KiB and counts, but says no address", async () => {
  const proxy = await start((socket) => {
    socket.write("HTTP/1.1 200 OK\r\n\r\n203.0.113.7\n");
    const more = (): void => {
      while (socket.write("x".repeat(65_536)));
      socket.once("drain", more);
    };
    more();
  });
  const result = await send(proxy.port, { url: httpUrl });
  expect(result).toMatchObject({ ok: true });
  expect(result.observedIP).toBeUndefined();
  await expect.poll(() => proxy.connections().open, { timeout: 20_000, interval: 2 }).toBe(0);
});

test("a connection that ends too early is a failure at every stage", async () => {
  expect(await fails(await start((socket) => socket.end()))).toBe("ConnectionClosed");
  expect(await fails(await startProxy("HTTP/1.1 200 OK\r\n\r\n", { end: true }), { url: httpsUrl })).toBe(
    "ConnectionClosed",
  );
  const half = await startProxy("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf", { end: true });
  expect(await fails(half, { url: httpUrl })).toBe("ConnectionClosed");
  expect(await fails(await start((socket) => socket.resetAndDestroy()), { url: httpUrl })).toBe("ConnectionClosed");
});

test("the status counts: any from 200 to 399, or the expected one alone", async () => {
  const answer = (status: number): string => `HTTP/1.1 ${status} evil\r\ncontent-length: 0\r\nlocation: /\r\n\r\n`;
  expect(await send((await startProxy(answer(302))).port, { url: httpUrl })).toMatchObject({ ok: true });
  expect(await fails(await startProxy(answer(404)), { url: httpUrl })).toBe("UnexpectedStatus");
  expect(await fails(await startProxy(answer(200)), { url: httpUrl, expectedStatus: 204 })).toBe("UnexpectedStatus");
  const teapot = await startProxy(answer(418));
  expect(await send(teapot.port, { url: httpUrl, expectedStatus: 418 })).toMatchObject({ ok: true });
});

test("an answer that switches protocols is none", async () => {
  const proxy = await startProxy("HTTP/1.1 101 evil\r\nconnection: upgrade\r\nupgrade: evil\r\n\r\n");
  expect(await fails(proxy, { url: httpUrl })).toBe("BadAnswer");
});

test("a url that is none fails without a connection", async () => {
  const proxy = await start(() => undefined);
  for (const url of ["http://[", "ftp://echo.test/"]) {
    expect(await send(proxy.port, { url })).toMatchObject({ ok: false, reason: "BadUrl" });
  }
  expect(proxy.connections().made).toBe(0);
});

test("a signal ends the probe without a result, at once and with its sockets closed", async () => {
  const proxy = await start(() => undefined);
  const stop = new AbortController();
  const running = send(proxy.port, { url: httpsUrl, timeoutMs: 60_000 }, stop.signal);
  await expect.poll(() => proxy.connections().open, { timeout: 20_000, interval: 2 }).toBe(1);
  stop.abort(new Error("stopping"));
  await expect(running).rejects.toThrow("stopping");
  await expect.poll(() => proxy.connections().open, { timeout: 20_000, interval: 2 }).toBe(0);
  await expect(send(proxy.port, {}, stop.signal)).rejects.toThrow("stopping");
});
