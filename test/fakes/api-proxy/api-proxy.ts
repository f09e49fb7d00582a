import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { buffer } from "node:stream/consumers";
import { issueCertificate, makeAuthority } from "#infra/local/certificates.ts";
import { Backend } from "./backend.ts";
import { BackendLost, Exchange, type SeenRequest } from "./exchange.ts";
import { refusal } from "./faults.ts";
import { requestTarget } from "./request-target.ts";
import { Rules } from "./rules.ts";

const passedOn = ["accept", "content-type", "user-agent", "impersonate-user"];
const host = "127.0.0.1";

/** Certificates take a second to make, and are never changed. */
let tls: ReturnType<typeof makeTls> | undefined;

/**
 * A proxy in front of a Kubernetes API, over TLS on both sides: it passes everything on, as the user of `backend` (the file
 * name of a kubeconfig), except for what its rules say. Its own clients show a token that a test may replace.
 */
export async function startApiProxy(options: { backend: string }): Promise<ApiProxy> {
  tls ??= makeTls();
  const proxy = new ApiProxy({ ...(await tls), dir: await mkdtemp(path.join(tmpdir(), "api-proxy-")), ...options });
  await proxy.start();
  return proxy;
}

export class ApiProxy {
  readonly rules = new Rules();
  /** Every request in order, those that are refused or lost too. */
  readonly requests: SeenRequest[] = [];
  readonly #dir: string;
  /** PEM, of the proxy's own certificate. */
  readonly authority: string;
  readonly #backend: Backend;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #port = 0;
  #token = newToken();

  constructor(deps: { certificate: string; key: string; authority: string; dir: string; backend: string }) {
    this.#dir = deps.dir;
    this.authority = deps.authority;
    this.#backend = new Backend(deps.backend);
    this.#server = createServer({ cert: deps.certificate, key: deps.key }, (request, response) => {
      void this.#serve(request, response);
    });
    // A client may find a kept connection closed in the moment in which it uses it: that fault is not asked for.
    this.#server.keepAliveTimeout = 600_000;
    this.#server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    this.#server.on("tlsClientError", () => undefined); // a connection that ends early is the client's affair
  }

  get url(): string {
    return `https://${host}:${this.#port}`;
  }

  /** Names the proxy; the token is in a file of its own. */
  get kubeconfigFile(): string {
    return path.join(this.#dir, "kubeconfig");
  }

  get tokenFile(): string {
    return path.join(this.#dir, "token");
  }

  /** The requests so far, as `verb resource[/subresource] status`; `-` where the client was told nothing. */
  log(): string[] {
    return this.requests.map(({ verb, resource, subresource, status }) =>
      [verb, subresource === "" ? resource : `${resource}/${subresource}`, status ?? "-"].join(" "),
    );
  }

  /** From now on only a new token is accepted. The function that it returns writes it to the token file. */
  replaceToken(): () => Promise<void> {
    this.#token = newToken();
    return () => writeFile(this.tokenFile, this.#token);
  }

  /** Ends every connection; new ones are welcome. */
  hangUp(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Ends every connection; new ones are refused until `listen`. */
  async refuseConnections(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.hangUp();
    await closed;
  }

  /** Listens again, on the port of before. */
  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject).listen(this.#port, host, () => resolve());
    });
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("not listening on a port");
    this.#port = address.port;
  }

  /** Once, after it was made. */
  async start(): Promise<void> {
    await this.listen();
    await writeFile(this.tokenFile, this.#token, { mode: 0o600 });
    await writeFile(this.kubeconfigFile, JSON.stringify(kubeconfig(this.url, this.authority)), { mode: 0o600 });
  }

  async stop(): Promise<void> {
    if (this.#server.listening) await this.refuseConnections();
    await this.#backend.stop();
    await rm(this.#dir, { recursive: true, force: true });
  }

  /** Rejects, and so fails the test run, only when a fault itself is wrong. */
  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url: target = "/" } = incoming;
    const headers = single(incoming);
    const body = await buffer(incoming).catch(() => undefined);
    if (body === undefined) return; // the client has gone before it had said everything
    const url = new URL(target, this.url);
    const asked = requestTarget(method, url);
    const request: SeenRequest = {
      ...asked,
      method,
      url,
      headers,
      body: body.toString(),
      status: undefined,
      forwarded: false,
    };
    this.requests.push(request);
    const forwarded = Object.fromEntries(
      passedOn.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
    );
    const sent = { method, target, headers: forwarded, body };
    const exchange = new Exchange({ request, sent, backend: this.#backend, response });
    if (headers["authorization"] !== `Bearer ${this.#token}`) return exchange.answer(refusal(401, "Unauthorized"));
    try {
      await (this.rules.take(asked) ?? ((plain: Exchange) => plain.relay()))(exchange);
    } catch (error) {
      if (!(error instanceof BackendLost)) throw error;
      exchange.drop();
    }
  }
}

function newToken(): string {
  return randomBytes(12).toString("hex");
}

function single({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value ?? ""].flat().join(", ")]));
}

async function makeTls() {
  const authority = await makeAuthority();
  const subject = { commonName: "api-proxy", altNames: [{ ip: host }] };
  return { ...(await issueCertificate(authority, subject)), authority: authority.certificate };
}

function kubeconfig(server: string, authority: string) {
  const cluster = { server, "certificate-authority-data": Buffer.from(authority).toString("base64") };
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "proxy", cluster }],
    users: [{ name: "tester", user: { tokenFile: "token" } }],
    contexts: [{ name: "proxy", context: { cluster: "proxy", user: "tester" } }],
    "current-context": "proxy",
  };
}
