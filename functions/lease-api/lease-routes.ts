import type { FastifyPluginCallbackZod } from "@fastify/type-provider-zod";
import { z } from "zod";
import type { Census } from "#shared/lease/census.ts";
import type { Lease } from "#shared/lease/lease.ts";
import type { LeaseStore } from "#shared/lease/store.ts";
import * as input from "./acquire-request.ts";
import { type Caller, callerOf, checkNamespace, type createGuard, isAdmin, mayUse } from "./caller.ts";
import { grantAnswer, leaseAnswer, leaseList, toGrantAnswer, toLeaseAnswer } from "./lease-answer.ts";
import { Problem } from "./problems.ts";

export interface LeaseRoutesDeps {
  store: LeaseStore;
  census: Census;
  requires: ReturnType<typeof createGuard>;
  /** Most time that one acquire may look for a free proxy. */
  searchMs: number;
}

/** Something is released every moment: clients may ask again soon. */
const retryNothingFreeSeconds = 1;
const retryQuotaSeconds = 5;

const byId = z.strictObject({ id: input.leaseId });
const listQuery = z.strictObject({
  owner: input.owner.optional(),
  target: input.target.optional(),
  proxy: input.proxyName.optional(),
  cursor: input.leaseCursor.optional(),
});

/** The calls under /v1/leases. */
export const leaseRoutes: FastifyPluginCallbackZod<LeaseRoutesDeps> = (app, deps, done) => {
  const { store, requires } = deps;

  app.post(
    "/leases",
    {
      onRequest: requires("lease"),
      schema: { body: input.acquireRequest, response: { 201: grantAnswer } },
    },
    async (request, reply) => {
      const lease = await acquire(deps, callerOf(request), request.body);
      return reply.code(201).header("location", `/v1/leases/${lease.id}`).send(toGrantAnswer(lease));
    },
  );

  app.get(
    "/leases",
    { onRequest: requires("read", "lease"), schema: { querystring: listQuery, response: { 200: leaseList } } },
    async (request) => {
      const caller = callerOf(request);
      const { cursor, ...filter } = request.query;
      checkNamespace(caller, filter.proxy?.split("/", 1)[0]);
      const tokenName = seesAll(caller) ? undefined : caller.name;
      const page = await store.list({ ...filter, tokenName, namespaces: caller.namespaces }, cursor);
      const leases = page.leases.map(toLeaseAnswer);
      return { leases, ...(page.nextCursor === undefined ? {} : { nextCursor: page.nextCursor }) };
    },
  );

  app.get(
    "/leases/:id",
    { onRequest: requires("read", "lease"), schema: { params: byId, response: { 200: leaseAnswer } } },
    async (request) => {
      const lease = await store.read(request.params.id);
      if (lease === undefined || !maySee(callerOf(request), lease)) throw new Problem("lease-not-found");
      return toLeaseAnswer(lease);
    },
  );

  app.delete(
    "/leases/:id",
    { onRequest: requires("lease"), schema: { params: byId, headers: input.leaseTokenHeader } },
    async (request, reply) => {
      await release(store, callerOf(request), request.params.id, request.headers["lease-token"]);
      return reply.code(204).send();
    },
  );
  done();
};

async function acquire(deps: LeaseRoutesDeps, caller: Caller, body: z.infer<typeof input.acquireRequest>) {
  const { selector, target, owner, ttlSeconds } = body;
  checkNamespace(caller, selector.namespace);
  const { name: tokenName, namespaces, maxLeases: quota } = caller;
  const request = { selector, target, owner, ttlMs: ttlSeconds * 1000, tokenName, namespaces, quota };
  const result = await deps.store.acquire(request, AbortSignal.timeout(deps.searchMs));
  if (result.outcome === "granted") return result.lease;
  if (result.outcome === "quota") {
    const detail = `The token has its ${quota} leases: release one.`;
    throw new Problem("quota-exceeded", { detail, retryAfterSeconds: retryQuotaSeconds });
  }
  const counts = await deps.census.counts(selector, namespaces);
  throw new Problem("nothing-free", { retryAfterSeconds: retryNothingFreeSeconds, extensions: { counts } });
}

async function release(store: LeaseStore, caller: Caller, id: string, leaseToken: string | undefined): Promise<void> {
  if (isAdmin(caller)) {
    // A namespace of a lease never changes, so that it can be judged before the release.
    const lease = caller.namespaces === undefined ? undefined : await store.read(id);
    if (lease !== undefined && !maySee(caller, lease)) throw new Problem("namespace-not-allowed");
  } else if (leaseToken === undefined) {
    const errors = [{ field: "Lease-Token", message: "this header is required" }];
    throw new Problem("invalid-request", { detail: "Lease-Token: this header is required", extensions: { errors } });
  }
  const result = await store.release(id, { tokenName: isAdmin(caller) ? undefined : caller.name, leaseToken });
  if (result === "not-owner") throw new Problem("not-owner");
  if (result === "wrong-token") throw new Problem("wrong-lease-token");
}

/** A token that may only lease sees its own leases; one that may read sees those of all. */
function seesAll(caller: Caller): boolean {
  return isAdmin(caller) || caller.scopes.includes("read");
}

function maySee(caller: Caller, lease: Lease): boolean {
  return mayUse(caller, lease.proxy.namespace) && (seesAll(caller) || lease.tokenName === caller.name);
}
