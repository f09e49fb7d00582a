import { setTimeout as pause } from "node:timers/promises";
import { ApiException, HttpMethod, type RequestContext, ResponseContext } from "@kubernetes/client-node";
import { type Dispatcher, request as send } from "undici";
import { Failure } from "#shared/errors/failure.ts";
import type { Deadline } from "./deadline.ts";
import { classifyApiError, type Effect } from "./failure.ts";
import type { Kubeconfig } from "./kubeconfig.ts";
import { retryDelayMs } from "./retry.ts";

type Response = Dispatcher.ResponseData;

/** A 2xx answer, as JSON and as the client library wants it. */
export interface WholeAnswer {
  document: unknown;
  context: ResponseContext;
}

/** Sends requests of the client library: credentials, retries, and every failure classified. */
export class Exchange {
  readonly #kubeconfig: Kubeconfig;
  readonly #userAgent: string;

  constructor(deps: { kubeconfig: Kubeconfig; userAgent: string }) {
    this.#kubeconfig = deps.kubeconfig;
    this.#userAgent = deps.userAgent;
  }

  /** The whole 2xx answer, after as many attempts as are safe and fit into the deadline. Rejects with a Failure. */
  async whole(request: RequestContext, deadline: Deadline): Promise<WholeAnswer> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const response = await this.begin(request, deadline);
        const text = await response.body.text();
        return { document: parse(text, request), context: inMemory(response, text) };
      } catch (error) {
        const failure = failureOf(error, request, deadline);
        const delay = deadline.signal.aborted ? undefined : retryDelayMs(failure, effectOf(request), attempt);
        if (delay === undefined || delay >= deadline.remainingMs) throw failure;
        await wait(delay, request, deadline);
      }
    }
  }

  /**
   * The head of a 2xx answer, its body still to be read. One attempt, and a second one with credentials read anew when
   * the first was told 401: the token may have rotated. Rejects with a Failure.
   */
  async begin(request: RequestContext, deadline: Deadline): Promise<Response> {
    try {
      return await this.#attempt(request, deadline);
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== "Unauthorized") throw error;
      this.#kubeconfig.reload();
      return await this.#attempt(request, deadline);
    }
  }

  async #attempt(request: RequestContext, deadline: Deadline): Promise<Response> {
    try {
      deadline.signal.throwIfAborted();
      const dispatcher = await this.#kubeconfig.authenticate(request);
      request.setHeaderParam("User-Agent", this.#userAgent);
      const response = await send(request.getUrl(), {
        dispatcher,
        method: request.getHttpMethod(),
        headers: request.getHeaders(),
        body: textBody(request),
        signal: deadline.signal,
      });
      if (response.statusCode >= 200 && response.statusCode < 300) return response;
      const text = await response.body.text();
      throw new ApiException(response.statusCode, "", text, flat(response.headers));
    } catch (error) {
      throw failureOf(error, request, deadline);
    }
  }
}

async function wait(delay: number, request: RequestContext, deadline: Deadline): Promise<void> {
  try {
    await pause(delay, undefined, { signal: deadline.signal });
  } catch (error) {
    throw failureOf(error, request, deadline);
  }
}

/** Once the deadline has fired, its reason explains every error better than the error itself. */
function failureOf(error: unknown, request: RequestContext, deadline: Deadline): Failure {
  const cause: unknown = deadline.signal.aborted ? deadline.signal.reason : error;
  const { pathname } = new URL(request.getUrl());
  return classifyApiError(cause, `${request.getHttpMethod()} ${pathname}`, effectOf(request));
}

/** A gateway's page, or half an answer. The error must not quote it: it may be half a Secret. */
function parse(text: string, request: RequestContext): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const op = `${request.getHttpMethod()} ${new URL(request.getUrl()).pathname}`;
    const message = `the answer of the API server is not whole JSON (${op})`;
    const ambiguous = effectOf(request) === "write";
    throw new Failure({ class: "Transient", code: "UnexpectedAnswer", message, op, ambiguous });
  }
}

function effectOf(request: RequestContext): Effect {
  return request.getHttpMethod() === HttpMethod.GET ? "read" : "write";
}

function textBody(request: RequestContext): string | null {
  const body = request.getBody();
  if (body === undefined || typeof body === "string") return body ?? null;
  throw new Error("only JSON is sent to the API server");
}

function inMemory(response: Response, text: string): ResponseContext {
  return new ResponseContext(response.statusCode, flat(response.headers), {
    text: () => Promise.resolve(text),
    binary: () => Promise.resolve(Buffer.from(text)),
    stream: () => null,
  });
}

function flat(headers: Response["headers"]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, [value].flat().join(", ")]],
    ),
  );
}
