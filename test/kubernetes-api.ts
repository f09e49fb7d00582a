import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Agent, request } from "undici";
import { parse } from "yaml";
import { z } from "zod";
import {
  type KubernetesApi,
  type KubernetesApiOptions,
  startKubernetesApi,
} from "#infra/local/kubernetes-api/start.ts";
import { proxyCrd } from "#shared/model/crd.ts";

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

/** A small Kubernetes API of the test's own, and a client that sees status codes and raw bodies. */
export class TestApi {
  readonly dir: string;
  readonly #options: Partial<KubernetesApiOptions>;
  #api: KubernetesApi;
  #agent: Agent;

  private constructor(dir: string, options: Partial<KubernetesApiOptions>, api: KubernetesApi) {
    [this.dir, this.#options, this.#api] = [dir, options, api];
    this.#agent = agentFor(api.kubeconfig);
  }

  static async start(options: Partial<KubernetesApiOptions> = {}): Promise<TestApi> {
    const dir = await mkdtemp(path.join(tmpdir(), "kubernetes-api-"));
    try {
      return new TestApi(dir, options, await begin(dir, options));
    } catch (error) {
      await rm(dir, { recursive: true });
      throw error;
    }
  }

  get kubeconfigFile(): string {
    return path.join(this.dir, "kubeconfig");
  }

  get dataFile(): string {
    return path.join(this.dir, "state.json");
  }

  get port(): number {
    return Number(new URL(this.#api.url).port);
  }

  async call(method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE", target: string, call: Call = {}) {
    const { body, type = "application/json", headers = {} } = call;
    const sent = typeof body === "string" || Buffer.isBuffer(body) || body === undefined ? body : JSON.stringify(body);
    const response = await request(this.#api.url + target, {
      method,
      dispatcher: this.#agent,
      headers: { authorization: `Bearer ${this.#api.token}`, "content-type": type, ...headers },
      ...(sent === undefined ? {} : { body: sent }),
      signal: AbortSignal.timeout(20_000),
    });
    const text = await response.body.text();
    const parsed: unknown = text.startsWith("{") ? JSON.parse(text) : { kind: text };
    return { status: response.statusCode, headers: response.headers, body: object.parse(parsed) };
  }

  /** The events of a watch, each as it comes; ends with the watch, or when the loop over it is left. */
  async *watch(target: string) {
    const headers = { authorization: `Bearer ${this.#api.token}` };
    const { body } = await request(this.#api.url + target, { dispatcher: this.#agent, headers });
    const event = z.object({ type: z.string(), object });
    body.on("error", () => undefined); // the loop is left, or the server is gone
    let rest = "";
    for await (const chunk of body.setEncoding("utf8")) {
      const lines = `${rest}${z.string().parse(chunk)}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield event.parse(JSON.parse(line));
    }
  }

  /** Stops the server, as Ctrl-C does, and starts another one with the same data. */
  async restart(options: Partial<KubernetesApiOptions> = {}): Promise<void> {
    await this.#end();
    this.#api = await begin(this.dir, { ...this.#options, ...options });
    this.#agent = agentFor(this.#api.kubeconfig);
  }

  async stop(): Promise<void> {
    await this.#end();
    await rm(this.dir, { recursive: true, force: true });
  }

  async #end(): Promise<void> {
    await this.#api.stop();
    await this.#agent.destroy();
  }
}

async function begin(dir: string, options: Partial<KubernetesApiOptions>) {
  const dataFile = path.join(dir, "state.json");
  const api = await startKubernetesApi({ port: 0, host: "127.0.0.1", dataFile, crds: [proxyCrd()], ...options });
  await writeFile(path.join(dir, "kubeconfig"), api.kubeconfig, { mode: 0o600 });
  return api;
}

function agentFor(kubeconfig: string): Agent {
  const cluster = z.object({ cluster: z.object({ "certificate-authority-data": z.base64() }) });
  const [first] = z.object({ clusters: z.array(cluster) }).parse(parse(kubeconfig)).clusters;
  const ca = Buffer.from(first?.cluster["certificate-authority-data"] ?? "", "base64");
  return new Agent({ connect: { ca } });
}
