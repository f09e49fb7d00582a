import { createHash } from "node:crypto";
import path from "node:path";
import { Failure } from "#shared/errors/failure.ts";
import type { AgentContainer } from "./agent-pod.ts";

/** Where a volume of the Pod lies on this machine. */
export interface Mounted {
  /** Absolute path inside the container. */
  mountPath: string;
  folder: string;
}

/**
 * The arguments of squid for a container, made for a machine without containers: paths of mounts are where the volumes
 * really are, and the name keeps its shared memory apart from other Squids'. Pure. Throws Permanent `NotSquid` for every
 * other program: whoever may create Pods must not get root on this machine.
 */
export function squidArguments(container: AgentContainer, mounts: readonly Mounted[], serviceName: string): string[] {
  const [program = "", ...args] = [...container.command, ...container.args];
  if (path.basename(program) !== "squid") {
    throw new Failure({
      class: "Permanent",
      code: "NotSquid",
      message: `container ${container.name} runs ${JSON.stringify(program)}: the local node agent runs squid only`,
    });
  }
  return [...args.map((arg) => relocate(arg, mounts)), "-n", serviceName];
}

/** Squid's name for itself and the prefix of its files in /dev/shm; Squid wants letters and digits only. Pure. */
export function serviceNameOf(uid: string): string {
  return `ep${createHash("sha256").update(uid).digest("hex").slice(0, 20)}`;
}

/**
 * Binds a squid.conf to one loopback address, and leaves everything else as the Pod has it. Pure. Connections to other
 * loopback addresses come from that address, too, so that a local site can tell the proxies apart; others must not, since
 * the internet cannot be reached from a loopback address.
 */
export function bindConfig(config: string, address: string, mounts: readonly Mounted[]): string {
  const bound = relocate(config, mounts).replaceAll(/^(\s*http_port\s+)(\d+)(?=\s|$)/gm, `$1${address}:$2`);
  return `${bound.trimEnd()}
# Added by the local node agent.
acl local_node_loopback dst 127.0.0.0/8
tcp_outgoing_address ${address} local_node_loopback
`;
}

/** Replaces whole paths and what lies below them, e.g. /run but not /running. */
function relocate(text: string, mounts: readonly Mounted[]): string {
  // One pass over all of them: a path that was put in must not be replaced again. The longest first: /a/b lies in /a.
  const folders = new Map(mounts.map(({ mountPath, folder }) => [mountPath.replace(/\/+$/, ""), folder]));
  if (folders.size === 0) return text;
  const paths = [...folders.keys()].sort((a, b) => b.length - a.length).map((each) => RegExp.escape(each));
  const whole = new RegExp(`(?<![\\w./-])(${paths.join("|")})(?![\\w.-])`, "g");
  return text.replaceAll(whole, (found) => folders.get(found) ?? found);
}
