import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { Failure } from "#shared/errors/failure.ts";
import { issueCertificate, type KeyedCertificate } from "../certificates.ts";

/** What a target site sees of a request: the proofs that a proxy works, and that it shows nothing of itself. */
interface Echo {
  /** Of the peer: the proxy's outgoing address. */
  address: string;
  method: string;
  path: string;
  /** Names in lower case; several values of one name are joined. */
  headers: Record<string, string>;
}

export interface EchoSiteOptions {
  /** A loopback address of its own, so that opening it to proxies opens nothing else. */
  host: string;
  /** Signs the site's certificate, made anew at every start. */
  authority: KeyedCertificate;
  /** 0 for any free one. */
  httpsPort: number;
  httpPort: number;
}

export interface EchoSite {
  /** `https://127.0.0.9:8443`, without a path. */
  httpsUrl: string;
  httpUrl: string;
  stop(): Promise<void>;
}

/** Starts a site that answers every request with what it saw of it, as JSON. Throws `PortInUse` by name. */
export async function startEchoSite(options: EchoSiteOptions): Promise<EchoSite> {
  const { host, authority } = options;
  const issued = await issueCertificate(authority, { commonName: "echo site", altNames: [{ ip: host }] });
  const secure = createTlsServer({ cert: issued.certificate, key: issued.key }, answer);
  const plain = createServer(answer);
  const servers = [secure, plain];
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => close(server)));
  };
  try {
    const httpsPort = await listen(secure, host, options.httpsPort);
    const httpPort = await listen(plain, host, options.httpPort);
    return { httpsUrl: `https://${host}:${httpsPort}`, httpUrl: `http://${host}:${httpPort}`, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

const answer: RequestListener = (request, response) => {
  request.resume();
  const body = `${JSON.stringify(echo(request), null, 2)}\n`;
  response.writeHead(200, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(request.method === "HEAD" ? undefined : body);
};

function echo(request: IncomingMessage): Echo {
  const headers = Object.entries(request.headersDistinct).map(([name, values]) => [name, values?.join(", ") ?? ""]);
  return {
    address: request.socket.remoteAddress ?? "",
    method: request.method ?? "",
    path: request.url ?? "",
    headers: Object.fromEntries<string>(headers.map(([name = "", value = ""]) => [name, value])),
  };
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      reject(error.code === "EADDRINUSE" ? inUse(host, port) : error),
    );
    server.listen(port, host, () => {
      const address = server.address();
      resolve(address === null || typeof address === "string" ? port : address.port);
    });
  });
}

function inUse(host: string, port: number): Failure {
  const message = `Port ${port} of ${host} is in use: stop what uses it, then start again.`;
  return new Failure({ class: "Permanent", code: "PortInUse", message });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve()); // an error says that it never listened: closed all the same
    server.closeAllConnections();
  });
}
