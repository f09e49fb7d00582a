import { onTestFinished } from "vitest";
import { ClusterConnection } from "#shared/cluster/connection.ts";
import { EventRecorder } from "#shared/cluster/events.ts";
import { loadInstallation } from "#shared/cluster/installation.ts";
import { ProxyClient } from "#shared/cluster/proxies.ts";
import { Fleet } from "#shared/fleet/fleet.ts";
import { createProducer } from "#shared/jobs/producer.ts";
import { connectRedis } from "#shared/redis/connect.ts";
import { createLogger } from "#shared/telemetry/logger.ts";
import { TestApi } from "#test/kubernetes-api.ts";
import { startRedis } from "#test/redis.ts";

export const log = createLogger({ levels: { level: "silent", components: {} }, pretty: false });

/** The part ends with the test; the last one first. */
export function endsWithTest<T>(part: T, end: (part: T) => unknown): T {
  onTestFinished(async () => {
    await end(part);
  });
  return part;
}

export type Surroundings = Awaited<ReturnType<typeof startSurroundings>>;

/**
 * A Redis and a Kubernetes API of the test's own, and what a process has of them. `eventsKubeconfig` names the API that
 * takes the events, if not the same.
 */
export async function startSurroundings({ eventsKubeconfig }: { eventsKubeconfig?: string }) {
  const server = endsWithTest(await startRedis(), (part) => part.stop());
  const api = endsWithTest(await TestApi.start(), (part) => part.stop());
  const connection = connect(api.kubeconfigFile);
  const redis = endsWithTest(
    connectRedis({ url: server.url, name: "world", whenDown: "wait", onError: () => undefined }),
    (part) => part.disconnect(),
  );
  const producer = endsWithTest(createProducer({ redis, log }), (part) => part.close());
  const installation = await loadInstallation(
    { connection, namespace: api.namespace, releaseName: "test" },
    { signal: AbortSignal.timeout(10_000) },
  );
  return {
    server,
    api,
    connection,
    redis,
    producer,
    installation,
    fleet: new Fleet({ redis }),
    proxies: new ProxyClient({ connection }),
    events: recordEvents(eventsKubeconfig === undefined ? connection : connect(eventsKubeconfig)),
  };
}

function connect(kubeconfigFile: string): ClusterConnection {
  return endsWithTest(ClusterConnection.load({ kubeconfigFile, userAgent: "lifecycle-test" }), (part) => part.close());
}

/** Cut off at the end rather than waited for: a test may have made its server hang. */
function recordEvents(connection: ClusterConnection): EventRecorder {
  return endsWithTest(new EventRecorder({ connection, log }), async (part) => {
    await connection.close();
    await part.close();
  });
}
