import { Agent, request } from "undici";
import { z } from "zod";
import { apiVersion } from "#shared/model/names.ts";
import { type Proxy, proxy } from "#shared/model/proxy.ts";

const callMs = 10_000;

export const manifest = z.looseObject({
  apiVersion: z.string(),
  kind: z.enum(["Proxy", "Secret", "Namespace"]),
  metadata: z.looseObject({ name: z.string() }),
});
export type Manifest = z.infer<typeof manifest>;

/** The few calls to the local Kubernetes API that the first look makes; everything else is kubectl's. */
export class ApiClient {
  readonly #url: string;
  readonly #token: string;
  readonly #agent: Agent;

  constructor(options: { url: string; token: string; authority: string }) {
    this.#url = options.url;
    this.#token = options.token;
    this.#agent = new Agent({ connect: { ca: options.authority } });
  }

  /** Creates an object. False: there is one of that name, also while it is being deleted; it stays as it is. */
  async create(object: Manifest, namespace: string): Promise<boolean> {
    const answer = await this.#call("POST", collectionOf(object, namespace), object);
    if (answer.status === 409) return false;
    expectOk(answer, `create ${object.kind} ${object.metadata.name}`);
    return true;
  }

  /** All Proxies, of every namespace. */
  async proxies(): Promise<Proxy[]> {
    const answer = await this.#call("GET", `/apis/${apiVersion}/proxies`);
    expectOk(answer, "list Proxies");
    return z.object({ items: z.array(proxy) }).parse(answer.body).items;
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #call(method: "GET" | "POST", target: string, body?: object): Promise<Answer> {
    const response = await request(new URL(target, this.#url), {
      method,
      dispatcher: this.#agent,
      headers: { authorization: `Bearer ${this.#token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(callMs),
    });
    return { status: response.statusCode, body: await response.body.json() };
  }
}

interface Answer {
  status: number;
  body: unknown;
}

function collectionOf({ kind }: Manifest, namespace: string): string {
  if (kind === "Namespace") return "/api/v1/namespaces";
  if (kind === "Secret") return `/api/v1/namespaces/${namespace}/secrets`;
  return `/apis/${apiVersion}/namespaces/${namespace}/proxies`;
}

function expectOk({ status, body }: Answer, what: string): void {
  if (status < 300) return;
  const { message } = z.object({ message: z.string() }).catch({ message: "" }).parse(body);
  throw new Error(`could not ${what}: ${status} ${message}`);
}
