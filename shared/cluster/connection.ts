import {
  type Configuration,
  createConfiguration,
  HttpMethod,
  RequestContext,
  ServerConfiguration,
  wrapHttpLibrary,
} from "@kubernetes/client-node";
import type { Dispatcher } from "undici";
import { type ClusterCall, Deadline } from "./deadline.ts";
import { Exchange } from "./exchange.ts";
import { Kubeconfig } from "./kubeconfig.ts";

/** A GET below the server's address; query values are encoded here. */
export interface ReadRequest {
  path: string;
  query: Readonly<Record<string, string>>;
  /** Content types, `application/json` by default. */
  accept?: string;
}

/**
 * The one way to our own API server: shared connections, and for every request a deadline, an abort signal, retries of
 * what is safe to repeat, and errors that are Failures.
 */
export class ClusterConnection {
  readonly #kubeconfig: Kubeconfig;
  readonly #exchange: Exchange;
  readonly #deadlineMs: number;
  readonly #closed = new AbortController();

  private constructor(kubeconfig: Kubeconfig, userAgent: string, deadlineMs: number) {
    this.#kubeconfig = kubeconfig;
    this.#exchange = new Exchange({ kubeconfig, userAgent });
    this.#deadlineMs = deadlineMs;
  }

  /** Dials nothing. Without a file: the Pod's own service account. Throws Permanent `InvalidKubeconfig`. */
  static load(options: {
    kubeconfigFile?: string | undefined;
    userAgent: string;
    deadlineMs?: number | undefined;
    /** Where a Pod's file system begins, for tests of the service account; the root by default. */
    podRoot?: string;
  }): ClusterConnection {
    const kubeconfig = new Kubeconfig(options.kubeconfigFile, options.podRoot);
    return new ClusterConnection(kubeconfig, options.userAgent, options.deadlineMs ?? 15_000);
  }

  get server(): string {
    return this.#kubeconfig.server;
  }

  /** A typed API of the client library; the deadline counts for each request by itself. Its methods reject with Failures. */
  api<T>(Api: new (config: Configuration) => T, call: ClusterCall): T {
    const httpApi = wrapHttpLibrary({
      send: async (request) => {
        const answer = await this.#within(call, (deadline) => this.#exchange.whole(request, deadline));
        return answer.context;
      },
    });
    // No authMethods: credentials are put on in the exchange, where refused ones can be read again.
    return new Api(createConfiguration({ baseServer: new ServerConfiguration(this.server, {}), httpApi }));
  }

  /** A JSON document. Rejects with a Failure. */
  async json(read: ReadRequest, call: ClusterCall): Promise<unknown> {
    const answer = await this.#within(call, (deadline) => this.#exchange.whole(this.#get(read), deadline));
    return answer.document;
  }

  /**
   * A body that goes on (a watch). The deadline covers the time until it begins; the signal all of it. One attempt: whoever
   * watches has a backoff of its own. Rejects with a Failure; the body may fail with any error.
   */
  async stream(read: ReadRequest, call: ClusterCall): Promise<Dispatcher.ResponseData["body"]> {
    const deadline = this.#deadline(call);
    try {
      const { body } = await this.#exchange.begin(this.#get(read), deadline);
      deadline.lift();
      body.once("close", () => deadline.release());
      return body;
    } catch (error) {
      deadline.release();
      throw error;
    }
  }

  /** Ends all requests at once; later ones fail. */
  async close(): Promise<void> {
    this.#closed.abort(new DOMException("the connection to the API server was closed", "AbortError"));
    await this.#kubeconfig.close();
  }

  #deadline(call: ClusterCall): Deadline {
    return new Deadline([call.signal, this.#closed.signal], call.deadlineMs ?? this.#deadlineMs);
  }

  async #within<T>(call: ClusterCall, work: (deadline: Deadline) => Promise<T>): Promise<T> {
    const deadline = this.#deadline(call);
    try {
      return await work(deadline);
    } finally {
      deadline.release();
    }
  }

  #get(read: ReadRequest): RequestContext {
    const request = new RequestContext(`${this.server}${read.path}`, HttpMethod.GET);
    request.setHeaderParam("Accept", read.accept ?? "application/json");
    for (const [name, value] of Object.entries(read.query)) request.setQueryParam(name, value);
    return request;
  }
}
