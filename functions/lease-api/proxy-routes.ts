import type { FastifyPluginCallbackZod } from "@fastify/type-provider-zod";
import { z } from "zod";
import { proxyStates } from "#shared/lease/counts.ts";
import type { Proxies } from "#shared/lease/proxies.ts";
import { namespace, provider, proxyCursor } from "./acquire-request.ts";
import { callerOf, checkNamespace, type createGuard } from "./caller.ts";
import { Problem } from "./problems.ts";
import { proxyAnswer, proxyList, toProxyAnswer } from "./proxy-answer.ts";

export interface ProxyRoutesDeps {
  proxies: Proxies;
  requires: ReturnType<typeof createGuard>;
}

const listQuery = z.strictObject({
  namespace: namespace.optional(),
  provider: provider.optional(),
  state: z.enum(proxyStates).optional(),
  cursor: proxyCursor.optional(),
});
const byName = z.strictObject({ namespace, name: z.string().min(1).max(253) });

/** The calls under /v1/proxies. */
export const proxyRoutes: FastifyPluginCallbackZod<ProxyRoutesDeps> = (app, { proxies, requires }, done) => {
  app.get(
    "/proxies",
    { onRequest: requires("read"), schema: { querystring: listQuery, response: { 200: proxyList } } },
    async (request) => {
      const caller = callerOf(request);
      const { cursor: from, ...filter } = request.query;
      checkNamespace(caller, filter.namespace);
      const page = await proxies.list({ ...filter, namespaces: caller.namespaces }, from);
      const answer = { proxies: page.proxies.map(toProxyAnswer) };
      return page.nextCursor === undefined ? answer : { ...answer, nextCursor: page.nextCursor };
    },
  );

  app.get(
    "/proxies/:namespace/:name",
    { onRequest: requires("read"), schema: { params: byName, response: { 200: proxyAnswer } } },
    async (request) => {
      checkNamespace(callerOf(request), request.params.namespace);
      const proxy = await proxies.read(request.params.namespace, request.params.name);
      if (proxy === undefined) throw new Problem("proxy-not-found");
      return toProxyAnswer(proxy);
    },
  );
  done();
};
