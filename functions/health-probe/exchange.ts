import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import type { Credentials } from "#shared/model/registry-record.ts";
import { ProbeFailure, type Stage } from "./probe-failure.ts";

/** No proxy and no site needs more, and a hostile one gets no more of our memory. */
const headerLimitBytes = 16_384;
const bodyLimitBytes = 65_536;

/**
 * Where CONNECT leads when there is no url to fetch. Needs no name server, and is refused at once: by the proxy's
 * rules, or because nobody listens there.
 */
const nowhere = "127.0.0.1:1";

export interface ProxyAddress {
  host: string;
  port: number;
  credentials?: Credentials | undefined;
}

/** How far a probe is, and what it must close. */
export class Attempt {
  stage: Stage = "connect";
  readonly #sockets: Duplex[] = [];

  /** From now on `end` closes the socket. */
  own<T extends Duplex>(socket: T): T {
    // Who waits for the socket sees its error. One that comes later would end the process if nobody listened.
    socket.on("error", () => undefined);
    this.#sockets.push(socket);
    return socket;
  }

  end(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** A site's answer; `body` is undefined when it was larger than we read. */
export interface Answer {
  status: number;
  body: Buffer | undefined;
}

/** Any answer of the proxy itself to a CONNECT, except that it does not know its credentials. */
export async function askProxy(proxy: ProxyAddress, attempt: Attempt): Promise<{ status: number }> {
  const { status } = await connectTo(nowhere, proxy, attempt);
  return { status };
}

/** An https url: CONNECT, TLS with the certificate verified, GET. */
export async function fetchThroughTunnel(url: URL, proxy: ProxyAddress, attempt: Attempt): Promise<Answer> {
  const { status, tunnel } = await connectTo(`${url.hostname}:${url.port || "443"}`, proxy, attempt);
  if (status < 200 || status > 299)
    throw new ProbeFailure("ProxyRefused", `The proxy answered CONNECT with status ${status}.`);
  attempt.stage = "tls";
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const name = net.isIP(host) === 0 ? { servername: host } : {}; // SNI knows no addresses; `host` is what is verified
  const secure = attempt.own(tls.connect({ socket: tunnel, host, ALPNProtocols: ["http/1.1"], ...name }));
  await once(secure, "secureConnect");
  attempt.stage = "answer";
  return await get(secure, url.pathname + url.search, { host: url.host });
}

/** An http url: GET in absolute form, which is answered by the site or by the proxy; nobody can tell which. */
export async function fetchAbsolute(url: URL, proxy: ProxyAddress, attempt: Attempt): Promise<Answer> {
  const socket = await dial(proxy, attempt);
  attempt.stage = "answer";
  const target = `${url.protocol}//${url.host}${url.pathname}${url.search}`;
  const answer = await get(socket, target, { host: url.host, ...authorization(proxy) });
  if (answer.status === 407) throw refusedCredentials(proxy);
  return answer;
}

async function dial({ host, port }: ProxyAddress, attempt: Attempt): Promise<net.Socket> {
  const socket = attempt.own(net.connect({ host, port }));
  await once(socket, "connect");
  return socket;
}

async function connectTo(
  authority: string,
  proxy: ProxyAddress,
  attempt: Attempt,
): Promise<{ status: number; tunnel: net.Socket }> {
  const socket = await dial(proxy, attempt);
  attempt.stage = "proxy";
  const headers = { host: authority, ...authorization(proxy) };
  const request = http.request({ ...requestOptions(socket), method: "CONNECT", path: authority, headers });
  const status = await new Promise<number>((resolve, reject) => {
    request.on("error", reject);
    request.once("connect", (response: http.IncomingMessage, _socket: Duplex, head: Buffer) => {
      if (head.length > 0) socket.unshift(head);
      resolve(response.statusCode ?? 0);
    });
    request.end();
  });
  if (status === 407) throw refusedCredentials(proxy);
  return { status, tunnel: socket };
}

async function get(socket: Duplex, path: string, headers: http.OutgoingHttpHeaders): Promise<Answer> {
  const request = http.request({ ...requestOptions(socket), method: "GET", path, headers });
  const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
    request.on("error", reject);
    request.once("response", resolve);
    // Some answers, an upgrade nobody asked for among them, end the request without an error.
    request.once("close", () => reject(new ProbeFailure("BadAnswer", "The answer is not one to a GET.")));
    request.end();
  });
  return { status: response.statusCode ?? 0, body: await readBody(response) };
}

async function readBody(response: http.IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    if (!Buffer.isBuffer(chunk)) continue;
    chunks.push(chunk);
    size += chunk.length;
    if (size > bodyLimitBytes) return undefined; // leaving the loop closes the response
  }
  return Buffer.concat(chunks);
}

/** One request on a socket of ours: no agent, so that nothing is pooled and nothing outlives the probe. */
function requestOptions(socket: Duplex) {
  return { createConnection: () => socket, setHost: false, maxHeaderSize: headerLimitBytes };
}

function authorization({ credentials }: ProxyAddress): http.OutgoingHttpHeaders {
  if (credentials === undefined) return {};
  const pair = Buffer.from(`${credentials.username}:${credentials.password}`, "utf8").toString("base64");
  return { "proxy-authorization": `Basic ${pair}` };
}

function refusedCredentials({ credentials }: ProxyAddress): ProbeFailure {
  const message = credentials ? "The proxy does not accept its credentials." : "The proxy wants credentials.";
  return new ProbeFailure("ProxyAuthRequired", message);
}
