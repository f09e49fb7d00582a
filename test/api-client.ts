import { Agent, request } from "undici";
import { z } from "zod";
import type { ApiAccess } from "#test/cluster/api-server.ts";

const object = z.looseObject({
  kind: z.string().default(""),
  metadata: z.looseObject({}).catch({}),
  message: z.string().default(""),
});

export interface Call {
  body?: unknown;
  /** Content type of the body; JSON by default. */
  type?: string;
  headers?: Record<string, string>;
}

/** A client of a Kubernetes API that sees status codes and raw bodies. */
export class ApiClient {
  readonly access: ApiAccess;
  readonly #agent: Agent;

  constructor(access: ApiAccess) {
    this.access = access;
    this.#agent = new Agent({ connect: { ca: access.authority }, allowH2: false });
  }

  async call(method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE", target: string, call: Call = {}) {
    const { body, type = "application/json", headers = {} } = call;
    const sent = typeof body === "string" || Buffer.isBuffer(body) || body === undefined ? body : JSON.stringify(body);
    const response = await request(this.access.url + target, {
      method,
      dispatcher: this.#agent,
      headers: { authorization: `Bearer ${this.access.token}`, "content-type": type, ...headers },
      ...(sent === undefined ? {} : { body: sent }),
      signal: AbortSignal.timeout(20_000),
    });
    const text = await response.body.text();
    const parsed: unknown = text.startsWith("{") ? JSON.parse(text) : { kind: text };
    return { status: response.statusCode, headers: response.headers, text, body: object.parse(parsed) };
  }

  /** The events of a watch, each as it comes; ends with the watch, or when the loop over it is left. */
  async *watch(target: string, more: Record<string, string> = {}) {
    const headers = { authorization: `Bearer ${this.access.token}`, ...more };
    const { body } = await request(this.access.url + target, { dispatcher: this.#agent, headers });
    const event = z.object({ type: z.string(), object });
    body.on("error", () => undefined); // the loop is left, or the server is gone
    let rest = "";
    for await (const chunk of body.setEncoding("utf8")) {
      const lines = `${rest}${z.string().parse(chunk)}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield event.parse(JSON.parse(line));
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}
