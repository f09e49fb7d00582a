import { createHash, timingSafeEqual } from "node:crypto";
import type { ServerResponse } from "node:http";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { answer } from "./answer.ts";
import { ApiError, badRequest, unknownPath } from "./api-error.ts";
import type { ApiState } from "./api-state.ts";
import { coreVersions, groupList, groupOf, resourceList } from "./discovery.ts";
import { openApiDocument, openApiIndex } from "./openapi.ts";
import { representationFor } from "./representation.ts";
import { findTarget, parseQuery } from "./request.ts";
import { checkWatch, startWatch } from "./watch.ts";

export interface ServerOptions {
  api: ApiState;
  token: string;
  tls: { certificate: string; key: string };
  bookmarkSeconds: number;
  onError: (error: unknown) => void;
}

const bodyLimit = 3 * 1024 * 1024; // that of the real server
// A watcher that does not read is cut off; it comes back with its last version.
const slowWatcherBytes = 16 * 1024 * 1024;
const publicPaths = new Set(["/healthz", "/readyz", "/livez", "/version"]);

/** The HTTP side: authentication, paths, bodies and errors. It is not listening yet. */
export function makeServer(options: ServerOptions): FastifyInstance {
  const { certificate: cert, key } = options.tls;
  const app = Fastify({ https: { cert, key }, bodyLimit, forceCloseConnections: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  app.setErrorHandler((error, _request, reply) => sendError(options, reply, error));
  app.setNotFoundHandler((_request, reply) => sendError(options, reply, unknownPath()));
  app.addHook("onRequest", async (request) => {
    if (publicPaths.has(request.url)) return;
    if (!sameSecret(request.headers.authorization ?? "", `Bearer ${options.token}`))
      throw new ApiError(401, "Unauthorized", "Unauthorized");
  });
  app.all("/*", (request, reply) => serve(options, request, reply));
  return app;
}

function sameSecret(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

function sendError(options: ServerOptions, reply: FastifyReply, error: unknown): FastifyReply {
  const known = toApiError(error);
  if (known.code >= 500) options.onError(error);
  return reply.code(known.code).send(known.toStatus());
}

function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && "statusCode" in error ? error.statusCode : 500;
  if (code === 413) return new ApiError(413, "RequestEntityTooLarge", message);
  return typeof code === "number" && code < 500 ? badRequest(message) : new ApiError(500, "InternalError", message);
}

function serve(options: ServerOptions, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { api } = options;
  const url = new URL(request.url, "http://local");
  const [root = "", ...rest] = segmentsOf(url);
  if (root === "api" || root === "apis") {
    const [group, version, ...path] = root === "api" ? ["", ...rest] : rest;
    if (version === undefined || group === undefined) return reply.send(discover(api, root, group));
    if (path.length === 0) return reply.send(resourceList(api, group, version));
    return serveResource(options, request, reply, url.searchParams, findTarget(api, group, version, path));
  }
  return serveRest(options, reply, root, rest);
}

function segmentsOf(url: URL): string[] {
  try {
    return url.pathname.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    throw badRequest("the path is not valid");
  }
}

function discover(api: ApiState, root: string, group: string | undefined): object {
  if (root === "api") return coreVersions();
  return group === undefined ? groupList(api) : groupOf(api, group);
}

function serveRest({ api }: ServerOptions, reply: FastifyReply, root: string, rest: string[]): FastifyReply {
  const [version, document, group, groupVersion] = rest;
  if (root === "version")
    return reply.send({
      major: "1",
      minor: "35",
      gitVersion: "v1.35.0",
      platform: `${process.platform}/${process.arch}`,
    });
  if (publicPaths.has(`/${root}`)) return reply.type("text/plain").send("ok");
  if (root !== "openapi") throw unknownPath();
  if (version === "v2") return reply.type("application/com.github.proto-openapi.spec.v2.v1.0+protobuf").send("");
  if (document === undefined) return reply.send(openApiIndex(api));
  const of = document === "api" ? { group: "", version: group } : { group, version: groupVersion };
  return reply.send(openApiDocument(api, { group: of.group ?? "", version: of.version ?? "" }));
}

function serveResource(
  options: ServerOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  search: URLSearchParams,
  target: ReturnType<typeof findTarget>,
): FastifyReply {
  const { api } = options;
  const query = parseQuery(search);
  const { accept = "", "content-type": type = "" } = request.headers;
  const representation = representationFor(target.kind, accept, query.includeObject, api.now);
  if (query.watch && request.method === "GET") {
    checkWatch(query);
    reply.hijack();
    const sink = watchSink(reply.raw);
    reply.raw.once("close", startWatch(api, target, query, representation, sink, options.bookmarkSeconds));
    return reply;
  }
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  const contentType = type.split(";")[0]?.trim() ?? "";
  const result = answer(api, { method: request.method, target, query, representation, contentType, body });
  for (const warning of result.warnings) void reply.header("Warning", `299 - ${JSON.stringify(warning)}`);
  return reply.code(result.code).send(result.body);
}

function watchSink(response: ServerResponse): Parameters<typeof startWatch>[4] {
  response.writeHead(200, { "content-type": "application/json" });
  response.flushHeaders(); // a client waits for them before it waits for events
  return {
    write: (line) => {
      response.write(line);
      if (response.writableLength > slowWatcherBytes) response.destroy();
    },
    end: () => response.end(),
  };
}
