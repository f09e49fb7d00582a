import type { ConnectionOptions } from "node:tls";
import type { DispatcherOptions } from "@kubernetes/client-node";
import { Agent, type Dispatcher, ProxyAgent } from "undici";
import { Failure } from "#shared/errors/failure.ts";

/** Requests have deadlines of their own and a watch its idle limit; this one catches a server that never answers at all. */
const headersTimeout = 30_000;

const pool = { bodyTimeout: 0, headersTimeout, keepAliveTimeout: 30_000, connections: 100, allowH2: false } as const;

/**
 * One pool of connections per TLS identity. The client library makes a new one for every request: a TLS handshake each.
 * A rotated CA or client certificate is another identity; the pool before it ends once its requests are through.
 */
export class Agents {
  readonly #open = new Set<Dispatcher>();
  #current: { key: string; agent: Dispatcher } | undefined;

  get(options: DispatcherOptions): Dispatcher {
    const key = JSON.stringify(options);
    if (this.#current?.key === key) return this.#current.agent;
    if (this.#current !== undefined) void this.#retire(this.#current.agent);
    const agent = create(options);
    this.#open.add(agent);
    this.#current = { key, agent };
    return agent;
  }

  async #retire(agent: Dispatcher): Promise<void> {
    await agent.close();
    this.#open.delete(agent);
  }

  /** Ends all connections at once, also those in use. */
  async destroy(): Promise<void> {
    await Promise.all([...this.#open].map((agent) => agent.destroy()));
  }
}

function create(options: DispatcherOptions): Dispatcher {
  if (options.type === "socks") {
    throw new Failure({
      class: "Permanent",
      code: "InvalidKubeconfig",
      message: "a SOCKS proxy-url in the kubeconfig is not supported: use an http proxy",
    });
  }
  if (options.type === "none") return new Agent({ ...pool, connect: keepAlive });
  if (options.type === "agent") return new Agent({ ...pool, connect: { ...identity(options.connect), ...keepAlive } });
  return new ProxyAgent({ ...pool, uri: options.uri, requestTls: identity(options.requestTls), connect: keepAlive });
}

/** Finds a peer that vanished without a word before a load balancer's idle limit (60 s) forgets the connection. */
const keepAlive = { keepAlive: true, keepAliveInitialDelay: 30_000 } as const;

/** Without the two settings that undici types differently and the client library never sets. */
function identity({ port: _port, timeout: _timeout, ...tls }: ConnectionOptions & { port?: unknown }) {
  return tls;
}
