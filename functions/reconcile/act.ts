import type { ProxyClient } from "#shared/cluster/proxies.ts";
import type { Outcome } from "#shared/domain/outcome.ts";
import type { Effect } from "#shared/domain/plan-reconcile.ts";
import { Failure, toFailure } from "#shared/errors/failure.ts";
import type { Fence } from "#shared/jobs/fence.ts";
import type { Proxy } from "#shared/model/proxy.ts";
import type { InstanceRecord } from "#shared/model/proxy-status.ts";
import type { Identity, Owner, Provider } from "#shared/provider/contract.ts";
import type { SecretValues } from "./secret-values.ts";

export interface ActDeps {
  proxies: Pick<ProxyClient, "addFinalizer" | "removeFinalizer">;
  provider: Provider | undefined;
  installation: string;
  fence: Fence;
  signal: AbortSignal;
  values: SecretValues | undefined;
  /** Makes sure that what the plan rests on is still true. */
  confirm: () => Promise<void>;
}

/** Tries the effects in turn until one takes effect. Throws only where the run must not go on: a lost key, a shutdown. */
export async function act(proxy: Proxy, effects: Effect[], deps: ActDeps): Promise<Outcome> {
  const outcome: Outcome = { done: undefined, going: [], failed: [] };
  for (const effect of effects) {
    try {
      const result = await perform(proxy, effect, deps);
      if (result !== "going") return { ...outcome, done: { effect, ...result } };
      outcome.going.push(effect);
    } catch (error) {
      const failure = toFailure(error);
      if (deps.signal.aborted || failure.code === "Superseded") throw error;
      outcome.failed.push({ effect, failure });
    }
  }
  return outcome;
}

async function perform(proxy: Proxy, effect: Effect, deps: ActDeps): Promise<{ providerID?: string } | "going"> {
  const call = { signal: deps.signal };
  switch (effect.kind) {
    case "add-finalizer":
      await deps.proxies.addFinalizer(proxy, call);
      return {};
    case "remove-finalizer":
      await deps.proxies.removeFinalizer(proxy, call);
      return {};
    case "record-intent":
      return {}; // the write of the status, which follows, is the effect
    case "create": {
      const { provider, request } = createRequest(proxy, effect.instance, deps);
      await deps.confirm();
      await deps.fence.check();
      const { providerID } = await provider.create(request, call);
      return { providerID };
    }
    case "delete": {
      const provider = present(deps.provider);
      await deps.confirm();
      await deps.fence.check();
      return (await provider.delete(identityOf(proxy, effect.instance, deps), call)) === "going" ? "going" : {};
    }
  }
}

function createRequest(proxy: Proxy, instance: InstanceRecord, deps: ActDeps) {
  const { auth, cloudInit } = present(deps.values);
  const request = {
    ...ownerOf(proxy, instance, deps),
    name: instance.name,
    zone: instance.zone,
    namespace: proxy.metadata.namespace,
    proxyName: proxy.metadata.name,
    placement: proxy.spec.placement ?? {},
    port: proxy.spec.port,
    auth,
    cloudInit,
  };
  return { provider: present(deps.provider), request };
}

function identityOf(proxy: Proxy, instance: InstanceRecord, deps: ActDeps): Identity {
  const { name, providerID, zone } = instance;
  return { ...ownerOf(proxy, instance, deps), name, namespace: proxy.metadata.namespace, providerID, zone };
}

function ownerOf(proxy: Proxy, { incarnation }: InstanceRecord, { installation }: ActDeps): Owner {
  return { uid: proxy.metadata.uid, incarnation, installation };
}

/** The plan never asks for what was not gathered; should it, the run fails loudly. */
function present<T>(value: T | undefined): T {
  if (value === undefined)
    throw new Failure({ class: "Transient", code: "NotGathered", message: "the plan asks for what was not read" });
  return value;
}
