import { readFile } from "node:fs/promises";
import path from "node:path";
import { Agent, type Dispatcher, request } from "undici";
import { parse } from "yaml";
import { z } from "zod";

const named = <T extends z.ZodType>(key: string, of: T) => z.array(z.looseObject({ name: z.string(), [key]: of }));
const fields = z
  .record(z.string(), z.unknown())
  .nullish()
  .transform((held) => held ?? {});
const file = z.object({
  clusters: named("cluster", fields),
  contexts: named("context", fields),
  users: named("user", fields),
  "current-context": z.string(),
});

export interface BackendRequest {
  method: string;
  /** Path and query. */
  target: string;
  headers: Record<string, string>;
  body: Buffer;
  signal?: AbortSignal;
}

/**
 * The API server behind the proxy, reached as the current user of a kubeconfig: a token, a token file or a client
 * certificate. The file is read for every request, so that a server that came back elsewhere is found.
 */
export class Backend {
  readonly #file: string;
  readonly #agents = new Map<string, Agent>();

  constructor(kubeconfigFile: string) {
    this.#file = kubeconfigFile;
  }

  /** Rejects when the server cannot be reached, or ends the connection before its answer begins. */
  async send({ target, headers, body, method, signal }: BackendRequest): Promise<Dispatcher.ResponseData> {
    const text = await readFile(this.#file, "utf8");
    const { server, tls, token } = await readAccess(text, path.dirname(this.#file));
    const dispatcher = this.#agents.get(text) ?? new Agent({ connect: tls, bodyTimeout: 0 });
    this.#agents.set(text, dispatcher);
    return await request(server.replace(/\/+$/, "") + target, {
      method,
      dispatcher,
      headers: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      body: body.length === 0 ? null : body,
      ...(signal === undefined ? {} : { signal }),
    });
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#agents.values()].map((agent) => agent.destroy()));
  }
}

async function readAccess(text: string, dir: string) {
  const config = file.parse(parse(text));
  const find = (list: "clusters" | "contexts" | "users", key: string, name: unknown) =>
    fields.parse(config[list].find((one) => one.name === name)?.[key]);
  const context = find("contexts", "context", config["current-context"]);
  const cluster = find("clusters", "cluster", context["cluster"]);
  const user = find("users", "user", context["user"]);
  const fromFile = async (name: unknown): Promise<string | undefined> =>
    typeof name === "string" ? (await readFile(path.resolve(dir, name), "utf8")).trim() : undefined;
  const pem = async (held: Record<string, unknown>, key: string): Promise<string | undefined> => {
    const data = held[`${key}-data`];
    return typeof data === "string" ? Buffer.from(data, "base64").toString("utf8") : await fromFile(held[key]);
  };
  const [ca, cert, key] = [
    await pem(cluster, "certificate-authority"),
    await pem(user, "client-certificate"),
    await pem(user, "client-key"),
  ];
  return {
    server: z.string().parse(cluster["server"]),
    token: (await fromFile(user["tokenFile"])) ?? z.string().optional().parse(user["token"]),
    tls: { ...(ca ? { ca } : {}), ...(cert ? { cert } : {}), ...(key ? { key } : {}) },
  };
}
