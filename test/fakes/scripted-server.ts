import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface SeenRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  body: string;
}

export type Answer = (response: ServerResponse, request: SeenRequest) => void;

export interface ScriptedServer {
  url: string;
  /** A kubeconfig that names this server; its token comes from `tokenFile`. */
  kubeconfigFile: string;
  tokenFile: string;
  requests: SeenRequest[];
  /** TCP connections that were ever opened, and that are open now. */
  connections(): { opened: number; open: number };
  stop(): Promise<void>;
}

/** An HTTP server on loopback that answers as the test says, faults on the wire included. */
export async function startScriptedServer(answer: Answer): Promise<ScriptedServer> {
  const folder = await mkdtemp(join(tmpdir(), "scripted-server-"));
  const requests: SeenRequest[] = [];
  const sockets = new Set<Socket>();
  let opened = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { pathname, searchParams } = new URL(request.url ?? "/", "http://scripted");
      const body = Buffer.concat(chunks).toString();
      const seen = {
        method: request.method ?? "",
        path: pathname,
        query: searchParams,
        headers: request.headers,
        body,
      };
      requests.push(seen);
      answer(response, seen);
    });
  });
  server.on("connection", (socket) => {
    opened += 1;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("not listening on a port");
  const url = `http://127.0.0.1:${address.port}`;
  const tokenFile = join(folder, "token");
  const kubeconfigFile = join(folder, "kubeconfig");
  await writeFile(tokenFile, "first-token");
  await writeFile(kubeconfigFile, JSON.stringify(kubeconfig(url, tokenFile)));
  return {
    url,
    kubeconfigFile,
    tokenFile,
    requests,
    connections: () => ({ opened, open: sockets.size }),
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
      await rm(folder, { recursive: true });
    },
  };
}

function kubeconfig(server: string, tokenFile: string) {
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "scripted", cluster: { server } }],
    users: [{ name: "tester", user: { "auth-provider": { name: "tokenFile", config: { tokenFile } } } }],
    contexts: [{ name: "scripted", context: { cluster: "scripted", user: "tester" } }],
    "current-context": "scripted",
  };
}

/** An answer with a JSON body. */
export function json(body: unknown, options: { status?: number; headers?: Record<string, string> } = {}): Answer {
  return (response) => {
    response.writeHead(options.status ?? 200, { "content-type": "application/json", ...options.headers });
    response.end(JSON.stringify(body));
  };
}

/** A refusal as the API server words it. */
export function refuse(
  status: number,
  reason: string,
  message = reason,
  more: { details?: object; headers?: Record<string, string> } = {},
): Answer {
  const body = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code: status };
  return json({ ...body, ...(more.details ? { details: more.details } : {}) }, { status, headers: more.headers ?? {} });
}
