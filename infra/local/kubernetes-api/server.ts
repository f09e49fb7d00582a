import { createHash, timingSafeEqual } from "node:crypto";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { ApiError, badRequest, UnknownPath, unknownPath } from "../kubernetes-objects/api-error.ts";
import { answer } from "./answer.ts";
import { groupList, groupOf, openApiDocument, openApiIndex, resourceList } from "./discovery.ts";
import { representationFor } from "./representation.ts";
import { findTarget, type Target } from "./request.ts";
import type { Store } from "./store.ts";
import { prepareWatch } from "./watch.ts";

export interface ServerOptions {
  store: Store;
  token: string;
  tls: { certificate: string; key: string };
  bookmarkSeconds: number;
  onError: (error: unknown) => void;
}

const bodyLimit = 3 * 1024 * 1024; // that of the real server
const slowWatcherBytes = 16 * 1024 * 1024; // a watcher that far behind is cut off; it comes back
const publicPaths = ["/healthz", "/readyz", "/livez", "/version"];
const openApiV2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/** The HTTP side: authentication, paths, bodies, errors. It does not listen yet. */
export function makeServer(options: ServerOptions): FastifyInstance {
  const fail = (error: unknown, _request: FastifyRequest, reply: FastifyReply): void => {
    const known = toApiError(error);
    if (known.code >= 500) options.onError(error);
    void reply.code(known.code);
    if (known instanceof UnknownPath) void reply.type("text/plain; charset=utf-8").send(`${known.message}\n`);
    else void reply.send(known.toStatus());
  };
  const app = Fastify({
    https: { cert: options.tls.certificate, key: options.tls.key },
    bodyLimit,
    forceCloseConnections: true,
    frameworkErrors: fail,
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  app.setErrorHandler(fail);
  app.addHook("onRequest", async ({ url, headers }) => {
    if (!publicPaths.includes(url) && !sameSecret(headers.authorization ?? "", `Bearer ${options.token}`))
      throw new ApiError(401, "Unauthorized", "Unauthorized");
  });
  app.all("/*", (request, reply) => serve(options, request, reply));
  return app;
}

function sameSecret(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && "statusCode" in error ? Number(error.statusCode) : 500;
  if (code === 413) return new ApiError(413, "RequestEntityTooLarge", message);
  return code < 500 ? badRequest(message) : new ApiError(500, "InternalError", message);
}

function serve(options: ServerOptions, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { store } = options;
  const [pathname = "", query] = request.url.split("?", 2);
  const [root = "", ...rest] = pathname.split("/").filter(Boolean).map(decodeURIComponent);
  const [group, version, ...path] = root === "api" ? ["", ...rest] : rest;
  if (root === "version") return reply.send({ major: "1", minor: "35", gitVersion: "v1.35.0" });
  if (publicPaths.includes(`/${root}`)) return reply.send("ok");
  // kubectl asks for version 2 where it does not find what it wants in 3: it gets an empty document.
  if (root === "openapi" && group === "v2") return reply.type(openApiV2).send("");
  if (root === "openapi" && group === "v3" && version === undefined) return reply.send(openApiIndex(store));
  if (root === "openapi" && group === "v3") return reply.send(openApiDocument(store, path.join("/")));
  if (root !== "api" && root !== "apis") throw unknownPath();
  if (group === undefined) return reply.send(groupList(store));
  if (version === undefined)
    return reply.send(root === "api" ? { kind: "APIVersions", versions: ["v1"] } : groupOf(store, group));
  const apiVersion = root === "api" ? version : `${group}/${version}`;
  if (path.length === 0) return reply.send(resourceList(store, apiVersion));
  return serveResource(options, request, reply, new URLSearchParams(query), findTarget(store, apiVersion, path));
}

function serveResource(
  { store, bookmarkSeconds }: ServerOptions,
  { method, headers, body: sent }: FastifyRequest,
  reply: FastifyReply,
  query: URLSearchParams,
  target: Target,
): FastifyReply {
  const representation = representationFor(target.kind, headers.accept ?? "", query.get("includeObject"), store.now);
  if (method === "GET" && ["true", "1"].includes(query.get("watch") ?? "")) {
    const start = prepareWatch(store, { target, query, representation, bookmarkSeconds });
    const response = reply.hijack().raw.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders(); // a client waits for them before it waits for events
    const write = (line: string): void => {
      response.write(line);
      if (response.writableLength > slowWatcherBytes) response.destroy();
    };
    response.once("close", start({ write, end: () => response.end() }));
    return reply;
  }
  const body = Buffer.isBuffer(sent) ? sent : Buffer.alloc(0);
  const contentType = headers["content-type"]?.split(";")[0]?.trim() ?? "";
  const {
    code,
    body: result,
    warnings = [],
  } = answer(store, { method, target, query, representation, contentType, body });
  if (warnings.length > 0)
    void reply.header(
      "warning",
      warnings.map((warning) => `299 - ${JSON.stringify(warning)}`),
    );
  return reply.code(code).send(result);
}
