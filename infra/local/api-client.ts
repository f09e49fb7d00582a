import { readFile } from "node:fs/promises";
import path from "node:path";
import { Agent, request } from "undici";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { apiVersion, group, version } from "#shared/model/names.ts";
import { type Proxy, proxy } from "#shared/model/proxy.ts";

const callMs = 10_000;

const manifest = z.looseObject({
  apiVersion: z.string(),
  kind: z.enum(["Proxy", "Secret", "Namespace"]),
  metadata: z.looseObject({ name: z.string() }),
});
type Manifest = z.infer<typeof manifest>;

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

  /** Creates every object of a YAML file, or brings it to what the file says. Returns the names of the Proxies. */
  async applyFile(file: string, namespace: string): Promise<string[]> {
    const documents = parseAllDocuments(await readFile(file, "utf8"));
    const objects = documents.map((document) => manifest.parse(document.toJS()));
    for (const object of objects) await this.apply(object, namespace);
    return objects.filter(({ kind }) => kind === "Proxy").map(({ metadata }) => metadata.name);
  }

  async apply(object: Manifest, namespace: string): Promise<void> {
    const collection = collectionOf(object, namespace);
    const created = await this.#call("POST", collection, object, "application/json");
    if (created.status !== 409) return expectOk(created, `create ${object.kind} ${object.metadata.name}`);
    const item = `${collection}/${object.metadata.name}`;
    expectOk(await this.#call("PATCH", item, object, "application/merge-patch+json"), `change ${item}`);
  }

  async proxies(namespace: string): Promise<Proxy[]> {
    const answer = await this.#call("GET", `/apis/${apiVersion}/namespaces/${namespace}/proxies`);
    expectOk(answer, "list Proxies");
    return z.object({ items: z.array(proxy) }).parse(answer.body).items;
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #call(method: "GET" | "POST" | "PATCH", target: string, body?: object, type?: string): Promise<Answer> {
    const response = await request(new URL(target, this.#url), {
      method,
      dispatcher: this.#agent,
      headers: { authorization: `Bearer ${this.#token}`, ...(type === undefined ? {} : { "content-type": type }) },
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
  return `/apis/${path.posix.join(group, version)}/namespaces/${namespace}/proxies`;
}

function expectOk({ status, body }: Answer, what: string): void {
  if (status < 300) return;
  const { message } = z.object({ message: z.string() }).catch({ message: "" }).parse(body);
  throw new Error(`could not ${what}: ${status} ${message}`);
}
