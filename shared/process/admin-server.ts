import { createServer, type Server } from "node:http";

export interface AdminDeps {
  host: string;
  port: number;
  /** The text of /metrics. */
  metrics: () => Promise<string>;
  metricsContentType: string;
  /** Names of what is not ready yet; an empty list means ready. */
  notReady: () => string[];
}

/** Serves /healthz, /readyz and /metrics. Throws when the port is taken, naming the setting. */
export async function startAdminServer(deps: AdminDeps): Promise<{ port: number; close: () => Promise<void> }> {
  const server = createServer((request, response) => {
    answer(request.url ?? "/", deps).then(
      ({ status, body, type = "text/plain" }) => response.writeHead(status, { "content-type": type }).end(body),
      () => response.writeHead(500).end("could not be read\n"),
    );
  });
  server.requestTimeout = 10_000;
  await listen(server, deps);
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : deps.port;
  return { port, close: () => closeServer(server) };
}

async function answer(url: string, deps: AdminDeps): Promise<{ status: number; body: string; type?: string }> {
  const [path] = url.split("?");
  if (path === "/healthz") return { status: 200, body: "ok\n" };
  if (path === "/metrics") return { status: 200, body: await deps.metrics(), type: deps.metricsContentType };
  if (path !== "/readyz") return { status: 404, body: "not found\n" };
  const waiting = deps.notReady();
  return waiting.length === 0
    ? { status: 200, body: "ok\n" }
    : { status: 503, body: `waiting for ${waiting.join(", ")}\n` };
}

async function listen(server: Server, { host, port }: AdminDeps): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      reject(error.code === "EADDRINUSE" ? new Error(`ADMIN_PORT ${port} is in use: choose another one`) : error);
    });
    server.listen(port, host, resolve);
  });
}

async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}
