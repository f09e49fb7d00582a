import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isIPv4 } from "node:net";
import { CoreV1Api } from "@kubernetes/client-node";
import type { ClusterConnection } from "#shared/cluster/connection.ts";
import { Failure } from "#shared/errors/failure.ts";

/**
 * Who will run the Pods: the cluster's kubelets or our node agent, and never both. Answers with this machine's address as
 * the Nodes see it; undefined for the agent, and where the Node is this machine. Throws Permanent, with the remedy.
 */
export async function machineAddressFor(
  connection: Pick<ClusterConnection, "api">,
  withAgent: boolean,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { items } = await connection.api(CoreV1Api, { signal }).listNode({ limit: 500 });
  const names = items.map(({ metadata }) => metadata?.name ?? "");
  if (withAgent) {
    if (names.length === 0) return undefined;
    throw refusal(
      "HasNodes",
      `The cluster has Nodes (${names.slice(0, 3).join(", ")}${names.length > 3 ? ", ..." : ""}), whose kubelets run Pods: start without --with-agent, which is for clusters that have none.`,
    );
  }
  if (names.length === 0) {
    throw refusal(
      "NoNodes",
      "The cluster has no Nodes, so nothing would run the Pods of Proxies: with --with-agent this machine runs them, as Squid processes.",
    );
  }
  const addresses = items.flatMap(({ status }) => status?.addresses ?? []);
  const internal = addresses.find(({ type, address }) => type === "InternalIP" && isIPv4(address))?.address;
  if (internal === undefined) throw refusal("NoNodeAddress", "No Node has an IPv4 address of type InternalIP.");
  const own = await addressTowards(internal);
  return own.startsWith("127.") ? undefined : own;
}

function refusal(code: string, message: string): Failure {
  return new Failure({ class: "Permanent", code, message });
}

/** Which of its addresses this machine uses towards another. Nothing is sent. */
async function addressTowards(host: string): Promise<string> {
  const socket = createSocket("udp4");
  try {
    socket.connect(9, host);
    await once(socket, "connect");
    return socket.address().address;
  } finally {
    socket.close();
  }
}
