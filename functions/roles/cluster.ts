import { setTimeout as sleep } from "node:timers/promises";
import { ClusterConnection } from "#shared/cluster/connection.ts";
import { type Installation, loadInstallation } from "#shared/cluster/installation.ts";
import { toFailure } from "#shared/errors/failure.ts";
import type { ClusterSettings } from "#shared/process/settings.ts";
import { loggerOf, type ProcessContext } from "./process-context.ts";

/** Connects a role to our own API server; the connection ends with the process. */
export function openCluster(context: ProcessContext, settings: ClusterSettings, name: string): ClusterConnection {
  const connection = ClusterConnection.load({
    kubeconfigFile: settings.KUBECONFIG,
    userAgent: `egress-proxies-${name}`,
  });
  context.parts.add(`cluster ${name}`, () => connection.close());
  return connection;
}

const retryMs = 2_000;

/**
 * Who we are. Waits for an API server that is away, since nothing may be created before the id is known; throws what
 * waiting cannot mend, and when the process stops.
 */
export async function installationOf(
  context: ProcessContext,
  settings: ClusterSettings,
  connection: ClusterConnection,
): Promise<Installation> {
  const { POD_NAMESPACE: namespace, RELEASE_NAME: releaseName, INSTALLATION_ID: installationID } = settings;
  const log = loggerOf(context, "cluster");
  for (;;) {
    try {
      const options = {
        connection,
        namespace,
        releaseName,
        ...(installationID === undefined ? {} : { installationID }),
      };
      return await loadInstallation(options, { signal: context.stopping });
    } catch (error) {
      const failure = toFailure(error);
      if (failure.class === "Permanent" || context.stopping.aborted) throw error;
      log.warn(
        { server: connection.server, reason: failure.message },
        "cannot tell yet which installation this is; trying again",
      );
      await sleep(retryMs, undefined, { signal: context.stopping });
    }
  }
}
