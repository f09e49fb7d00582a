import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type BoundProcess, startBoundProcess } from "../bound-process.ts";
import type { AgentContainer, AgentPod } from "./agent-pod.ts";
import { notePid } from "./earlier-life.ts";
import { type PodFiles, type PodUser, removeSharedMemory, type SecretFiles } from "./pod-files.ts";
import { bindConfig, serviceNameOf, squidArguments } from "./squid-command.ts";

/**
 * Writes the Pod's files and starts its Squid on `address`. Rejects when it cannot be started, with Permanent `NotSquid`
 * when the Pod runs something else.
 */
export async function startSquid(options: {
  pod: AgentPod;
  container: AgentContainer;
  address: string;
  secrets: ReadonlyMap<string, SecretFiles>;
  files: PodFiles;
  user: PodUser | undefined;
}): Promise<BoundProcess> {
  const { pod, container, address, secrets, files, user } = options;
  const serviceName = serviceNameOf(pod.metadata.uid);
  squidArguments(container, [], serviceName); // refuses before anything is written
  const mounts = await files.writeVolumes(pod, secrets, (content, name, all) =>
    name === "squid.conf" ? Buffer.from(bindConfig(Buffer.from(content).toString("utf8"), address, all)) : content,
  );
  // A Squid that was killed may have left some, perhaps of another user.
  await removeSharedMemory(serviceName);
  const args = squidArguments(container, mounts, serviceName);
  const squid = await startBoundProcess({ command: "squid", args, logFile: files.logFile, user });
  await notePid(files, squid.pid);
  return squid;
}

/** Settles once the port accepts connections. Rejects when `signal` fires. */
export async function accepts(host: string, port: number, signal: AbortSignal): Promise<void> {
  for (;;) {
    const socket = connect({ host, port, timeout: 1_000 });
    const connected = await once(socket, "connect", { signal }).then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (connected) return;
    await sleep(50, undefined, { signal });
  }
}
