import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";

export interface ProxyAccess {
  host: string;
  port: number;
  /** `user:password`; without: none are sent. */
  credentials?: string;
}

/** The status that a proxy answers with to a request for `host:port`, byte for byte our own: no client refuses it first. */
export async function statusThrough(proxy: ProxyAccess, method: "GET" | "CONNECT", target: string): Promise<number> {
  const { host, port, credentials } = proxy;
  const socket = connect({ host, port, timeout: 10_000 });
  socket.once("timeout", () => socket.destroy(new Error(`no answer from ${host}:${port}`)));
  await once(socket, "connect");
  const authorization = credentials === undefined ? "" : `Proxy-Authorization: Basic ${btoa(credentials)}\r\n`;
  const asked = method === "GET" ? `http://${target}/` : target;
  // `close` ends a tunnel that was opened against our expectation, too.
  socket.end(`${method} ${asked} HTTP/1.1\r\nHost: ${target}\r\nConnection: close\r\n${authorization}\r\n`);
  return Number(/^HTTP\/1\.[01] (\d{3})/.exec(await text(socket))?.[1]);
}
