import { reconcileSettings } from "#functions/reconcile/config.ts";
import { ReconcileConsumers } from "#functions/reconcile/start.ts";
import { EventRecorder } from "#shared/cluster/events.ts";
import { ProxyClient } from "#shared/cluster/proxies.ts";
import { SecretReader } from "#shared/cluster/secrets.ts";
import { toFailure } from "#shared/errors/failure.ts";
import type { Fleet } from "#shared/fleet/fleet.ts";
import type { JobReport } from "#shared/jobs/consumer.ts";
import type { Producer } from "#shared/jobs/producer.ts";
import { parseEnvironment } from "#shared/process/environment.ts";
import { clusterSettings, watchedNamespaces } from "#shared/process/settings.ts";
import type { ProviderCall } from "#shared/provider/decorators/metrics.ts";
import { createProvider, type ProviderDeps } from "#shared/provider/factory.ts";
import { ProviderSet } from "#shared/provider/providers.ts";
import type { RedisClient } from "#shared/redis/connect.ts";
import { installationOf, openCluster } from "./cluster.ts";
import { loggerOf, type ProcessContext } from "./process-context.ts";

interface Shared {
  redis: RedisClient;
  producer: Producer;
  fleet: Fleet;
  onOutcome: (report: JobReport) => void;
}

/** Connects reconcile to the cluster and to the configured providers, which it follows without a restart. */
export async function startReconcile(context: ProcessContext, shared: Shared): Promise<void> {
  const settings = parseEnvironment(clusterSettings.extend(reconcileSettings.shape), context.env);
  const connection = openCluster(context, settings, "functions");
  const installation = await installationOf(context, settings, connection);
  const events = new EventRecorder({ connection, log: loggerOf(context, "events") });
  context.parts.add("events", () => events.close());
  const log = loggerOf(context, "reconcile");
  const providers = openProviders(context, {
    connection,
    installation: installation.id,
    namespaces: watchedNamespaces(settings),
  });
  const consumers = new ReconcileConsumers({
    ...shared,
    settings,
    log,
    installation,
    events,
    proxies: new ProxyClient({ connection }),
    secrets: new SecretReader({ connection }),
    provider: (name) => providers.get(name),
    handOver: (queue, key, delayMs) => shared.producer.enqueue(queue, key, { delayMs }),
    onGone: (key) => context.metrics.forgetProxy(key),
  });
  context.parts.add("reconcile", () => consumers.stop());
  await context.providersFile.follow(settings.PROVIDERS_FILE, async (entries) => {
    providers.apply(entries);
    await consumers.follow(entries);
  });
  log.info({ installation: installation.id, server: connection.server, providers: providers.names() }, "reconciling");
}

function openProviders(
  context: ProcessContext,
  deps: Pick<ProviderDeps, "connection" | "installation" | "namespaces">,
): ProviderSet {
  const log = loggerOf(context, "provider");
  const observe = (call: ProviderCall): void => context.metrics.providerRequests.inc({ ...call });
  const onUnreadable = (provider: string, part: string, error: unknown): void =>
    log.warn({ provider, part, reason: toFailure(error).message }, "a listing had to leave something out");
  const onInsecure = (provider: string, setting: string): void =>
    log.warn({ provider, setting }, "an insecure setting is on: whoever reaches a proxy of this provider can use it");
  const providers = new ProviderSet({
    create: (entry) => createProvider(entry, { ...deps, observe, onUnreadable, onInsecure }),
    onCloseError: (provider, error) =>
      log.warn({ provider, reason: toFailure(error).message }, "could not close a provider"),
  });
  context.parts.add("providers", () => providers.close());
  return providers;
}
