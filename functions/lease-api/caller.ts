import type { FastifyRequest, onRequestHookHandler } from "fastify";
import { Problem } from "./problems.ts";
import { type ApiToken, findToken, type Scope } from "./tokens.ts";

/** Who makes a request: an API token without its hash. */
export interface Caller {
  name: string;
  scopes: readonly Scope[];
  /** Undefined: all. */
  namespaces: readonly string[] | undefined;
  maxLeases: number | undefined;
}

/** Everybody, when the API runs without tokens. */
const anybody: Caller = { name: "anonymous", scopes: ["admin"], namespaces: undefined, maxLeases: undefined };

/** Name under which a request keeps its caller; the server declares it. */
export const callerDecorator = "caller";

export function isAdmin(caller: Caller): boolean {
  return caller.scopes.includes("admin");
}

/** May the caller use what lies in this namespace? */
export function mayUse(caller: Caller, namespace: string): boolean {
  return caller.namespaces?.includes(namespace) ?? true;
}

/** Throws the problem `namespace-not-allowed` when a request names a namespace that the token is not for. */
export function checkNamespace(caller: Caller, namespace: string | undefined): void {
  if (namespace !== undefined && !mayUse(caller, namespace)) throw new Problem("namespace-not-allowed");
}

/** The caller that a `requires` hook found. */
export function callerOf(request: FastifyRequest): Caller {
  return request.getDecorator<Caller>(callerDecorator);
}

/** `tokens`: those in force right now; undefined: the API runs without. */
export type TokenSource = () => readonly ApiToken[] | undefined;

/**
 * Makes hooks that let a request pass when its bearer token has one of the scopes; admin has them all. They run before
 * the body is read, so a stranger costs little and learns nothing about what would be valid.
 */
export function createGuard(tokens: TokenSource): (...oneOf: Scope[]) => onRequestHookHandler {
  return (...oneOf) =>
    (request, _reply, done) => {
      const caller = authenticate(tokens(), request.headers.authorization);
      if (!isAdmin(caller) && !oneOf.some((scope) => caller.scopes.includes(scope))) {
        throw new Problem("missing-scope", { detail: `This call needs the scope ${oneOf.join(" or ")}.` });
      }
      request.setDecorator(callerDecorator, caller);
      done();
    };
}

function authenticate(tokens: readonly ApiToken[] | undefined, header: string | undefined): Caller {
  if (tokens === undefined) return anybody;
  const [, presented] = /^Bearer +([^\s]+)$/i.exec(header ?? "") ?? [];
  const token = presented === undefined ? undefined : findToken(tokens, presented);
  if (token === undefined) throw new Problem("unauthorized");
  return { name: token.name, scopes: token.scopes, namespaces: token.namespaces, maxLeases: token.maxLeases };
}
