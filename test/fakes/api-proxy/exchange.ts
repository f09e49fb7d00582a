import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Dispatcher } from "undici";
import type { Backend, BackendRequest } from "./backend.ts";
import type { RequestTarget } from "./request-target.ts";

/** One request of the client, as the proxy's log has it. */
export interface SeenRequest extends RequestTarget {
  method: string;
  /** With the query. */
  url: URL;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** What the client was told; undefined while it was told nothing. */
  status: number | undefined;
  /** Whether the API server has seen it. */
  forwarded: boolean;
}

export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}

const passedBack = ["content-type", "retry-after", "warning", "audit-id"];

/** The backend went away or hung up; the client is to see the same. */
export class BackendLost extends Error {}

/** One request and its answer, in the hands of a fault. */
export class Exchange {
  readonly request: SeenRequest;
  readonly #sent: BackendRequest;
  readonly #backend: Backend;
  readonly #response: ServerResponse;
  readonly #closed = new AbortController();

  constructor(deps: { request: SeenRequest; sent: BackendRequest; backend: Backend; response: ServerResponse }) {
    ({ request: this.request, sent: this.#sent, backend: this.#backend, response: this.#response } = deps);
    this.#response.once("close", () => this.#closed.abort());
  }

  /** The API server's whole answer. A client that gives up does not take the request back. */
  async forward(): Promise<Answer> {
    const response = await this.#send();
    try {
      const body = Buffer.from(await response.body.arrayBuffer());
      return { status: response.statusCode, headers: headersOf(response), body };
    } catch (cause) {
      throw new BackendLost("the answer broke off", { cause });
    }
  }

  /** The lines of the API server's answer as they come, until it or the client ends. Its head has then been sent. */
  async lines(): Promise<AsyncIterable<string>> {
    const response = await this.#send(this.#closed.signal);
    this.#head(response.statusCode, headersOf(response));
    this.#response.flushHeaders(); // a client waits for them before it waits for events
    return this.#linesOf(response);
  }

  async *#linesOf(response: Dispatcher.ResponseData): AsyncGenerator<string, void> {
    response.body.on("error", () => undefined); // also thrown below; here when the loop was left before
    let rest = "";
    try {
      for await (const chunk of response.body.setEncoding("utf8")) {
        const lines = `${rest}${String(chunk)}`.split("\n");
        rest = lines.pop() ?? "";
        yield* lines;
      }
    } catch (cause) {
      if (!this.#closed.signal.aborted) throw new BackendLost("the watch broke off", { cause });
    }
    if (rest !== "") yield rest;
  }

  /** Passes everything on; for a watch, what `edit` makes of its lines. */
  async relay(edit: (lines: AsyncIterable<string>) => AsyncIterable<string> = (lines) => lines): Promise<void> {
    if (this.request.verb !== "watch") return this.answer(await this.forward());
    for await (const line of edit(await this.lines())) this.#response.write(`${line}\n`);
    this.#response.end();
  }

  answer({ status, headers, body }: Answer): void {
    this.#head(status, { ...headers, "content-length": String(body.length) });
    this.#response.end(body);
  }

  /** Head and first half of an answer; what is left of the body is returned. Resolves once they are on their way. */
  async half({ status, headers, body }: Answer): Promise<Buffer> {
    const middle = Math.floor(body.length / 2);
    this.#head(status, { ...headers, "content-length": String(body.length) });
    await this.write(body.subarray(0, middle));
    return body.subarray(middle);
  }

  /** More of a body whose head was sent. Resolves once it is on its way: a hang-up no longer takes it back. */
  async write(chunk: Buffer | string): Promise<void> {
    await new Promise<void>((resolve) => this.#response.write(chunk, () => resolve()));
  }

  /** Ends the connection without another word. */
  drop(): void {
    this.#response.destroy();
  }

  /** Until the client, or the proxy's end, has closed the connection. */
  async closed(): Promise<void> {
    if (!this.#closed.signal.aborted) await once(this.#closed.signal, "abort");
  }

  async #send(signal?: AbortSignal): Promise<Dispatcher.ResponseData> {
    try {
      this.request.forwarded = true;
      return await this.#backend.send({ ...this.#sent, ...(signal === undefined ? {} : { signal }) });
    } catch (cause) {
      throw new BackendLost("the API server cannot be reached", { cause });
    }
  }

  #head(status: number, headers: Record<string, string>): void {
    this.request.status = status;
    this.#response.writeHead(status, headers);
  }
}

function headersOf({ headers }: Dispatcher.ResponseData): Record<string, string> {
  return Object.fromEntries(
    passedBack.flatMap((name) => (headers[name] === undefined ? [] : [[name, [headers[name]].flat().join(", ")]])),
  );
}
