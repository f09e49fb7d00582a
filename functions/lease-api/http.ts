import type { Socket } from "node:net";
import { type ConnectionError, type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import type { Logger } from "#shared/telemetry/logger.ts";
import { Problem, type ProblemCode, problemMediaType } from "./problems.ts";
import { toProblem } from "./to-problem.ts";

/** An acquire is far below 1 KiB. */
const bodyLimit = 16 * 1024;
const maxHeaderSize = 16 * 1024;
/** Most time that a request may take to arrive. */
const requestTimeout = 10_000;

/** What a connection did wrong before there was a request. */
const byClientError: Readonly<Record<string, ProblemCode>> = {
  HPE_HEADER_OVERFLOW: "headers-too-large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "body-too-large",
  ERR_HTTP_REQUEST_TIMEOUT: "request-timeout",
};

/**
 * An HTTP server that bounds what a client can send, takes only JSON, and answers every error with a problem.
 * `log` gets one line per error of ours and, at debug, one per request: method, route and status, never a header.
 */
export function createHttp(log: Logger): FastifyInstance {
  const app: FastifyInstance = fastify({
    logger: false,
    bodyLimit,
    requestTimeout,
    // Node looks for late requests every 30 s unless told.
    http: { maxHeaderSize, connectionsCheckingInterval: 1_000 },
    routerOptions: { maxParamLength: 300 },
    forceCloseConnections: "idle",
    // Requests that arrive while the server stops are still served; their connections close afterwards.
    return503OnClosing: false,
    clientErrorHandler: answerClientError,
    frameworkErrors: (error, _request, reply) => {
      void sendProblem(reply, toProblem(error));
    },
  });
  app.removeAllContentTypeParsers();
  const parseJson = app.getDefaultJsonParser("error", "error");
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body, done) => {
    const text = decodeUtf8(body);
    if (text === undefined) done(new Problem("malformed-request", { detail: "The body is not UTF-8." }));
    // Clients name the type also where they send nothing; the route judges whether it can do without.
    else if (text === "") done(null, undefined);
    else void parseJson(request, text, done);
  });
  app.setNotFoundHandler((_request, reply) => sendProblem(reply, new Problem("route-not-found")));
  app.setErrorHandler((error, request, reply) => {
    const problem = toProblem(error);
    if (problem.code === "internal") logInternal(log, error, request);
    return sendProblem(reply, problem);
  });
  closeConnectionsWhileStopping(app);
  app.addHook("onResponse", (request, reply, done) => {
    const route = request.routeOptions.url ?? "none";
    log.debug({ method: request.method, route, status: reply.statusCode, ms: reply.elapsedTime }, "answered");
    done();
  });
  return app;
}

/** A client that was being served when the stop began would otherwise keep its connection, and the stop, open. */
function closeConnectionsWhileStopping(app: FastifyInstance): void {
  let stopping = false;
  app.addHook("preClose", (done) => {
    stopping = true;
    done();
  });
  app.addHook("onSend", (_request, reply, _payload, done) => {
    if (stopping) void reply.header("connection", "close");
    done();
  });
}

function decodeUtf8(body: string | Buffer): string | undefined {
  try {
    return typeof body === "string" ? body : new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    return undefined;
  }
}

function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  if (problem.retryAfterSeconds !== undefined) void reply.header("retry-after", problem.retryAfterSeconds);
  if (problem.code === "unauthorized") void reply.header("www-authenticate", "Bearer");
  return reply.code(problem.status).type(problemMediaType).send(problem.toBody());
}

/** The stack alone: other members of an error may hold what a client or Redis sent. */
function logInternal(log: Logger, error: unknown, request: FastifyRequest): void {
  const stack = error instanceof Error ? error.stack : String(error);
  log.error({ stack, method: request.method, route: request.routeOptions.url }, "a request failed");
}

function answerClientError(error: ConnectionError, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const problem = new Problem(byClientError[error.code ?? ""] ?? "malformed-request");
  const body = problem.toBody();
  const head = [
    `HTTP/1.1 ${problem.status} ${problem.code}`,
    "Connection: close",
    `Content-Type: ${problemMediaType}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}
