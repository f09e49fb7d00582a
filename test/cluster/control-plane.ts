import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { makeKubeconfig } from "#infra/local/kubeconfig.ts";
import { type ApiAccess, ApiServer } from "./api-server.ts";
import type { Binaries } from "./binaries.ts";
import { compactEtcd, startEtcd } from "./etcd.ts";

/** Ports are chosen before they are used: somebody else may take one in between. */
const attempts = 3;

export interface ControlPlaneOptions {
  binaries: Binaries;
  /** Added to kube-apiserver's command line. */
  apiServerArgs?: string[];
}

/** A real Kubernetes API: etcd and kube-apiserver, nothing else, in a folder and on ports of its own. */
export interface ControlPlane extends ApiAccess {
  /** kube-apiserver asks there. */
  etcdUrl: string;
  /** A file that gives its reader all rights. */
  adminKubeconfig: string;
  /** kill -9 of kube-apiserver. */
  killApiServer(): Promise<void>;
  /** Starts it (again) at the same address; resolves once it is ready. */
  restartApiServer(): Promise<void>;
  pauseApiServer(): void;
  resumeApiServer(): void;
  /** Makes etcd forget all but the newest state. */
  compact(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts a control plane, with RBAC on, in about 5 s. What its missing controllers would do does not happen: a namespace
 * is never deleted whole, nothing that is owned is collected, and a namespace has no ServiceAccount `default`, without
 * which it takes no Pod. Both processes and the folder go with this process, even when that is killed with SIGKILL.
 * Rejects when one of the two is not ready within 30 s.
 */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await begin(options);
    } catch (error) {
      const isTaken = error instanceof Error && error.message.includes("address already in use");
      if (!isTaken || attempt === attempts) throw error;
    }
  }
}

async function begin({ binaries, apiServerArgs = [] }: ControlPlaneOptions): Promise<ControlPlane> {
  const dir = await mkdtemp(path.join(tmpdir(), "control-plane-"));
  const ends: (() => Promise<void>)[] = [removeAfterUs(dir)];
  const stop = async (): Promise<void> => {
    for (const end of ends.splice(0).reverse()) await end();
  };
  try {
    const etcd = await startEtcd(binaries.etcd, dir);
    ends.push(() => etcd.process.stop(0));
    const server = await ApiServer.start({
      binary: binaries.apiServer,
      dir,
      etcdUrl: etcd.url,
      args: apiServerArgs,
    });
    ends.push(() => server.kill());
    const adminKubeconfig = path.join(dir, "admin.kubeconfig");
    await writeFile(adminKubeconfig, makeKubeconfig(server.access), { mode: 0o600 });
    return {
      ...server.access,
      etcdUrl: etcd.url,
      adminKubeconfig,
      killApiServer: () => server.kill(),
      restartApiServer: () => server.launch(),
      pauseApiServer: () => server.pause(),
      resumeApiServer: () => server.resume(),
      compact: () => compactEtcd(etcd.url),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * A shell that waits for the end of its input, which the kernel brings when this process ends in any way, and removes the
 * folder then. Etcd, killed at the same moment, may still write: hence the repeats. Answers with how to have it now.
 */
function removeAfterUs(dir: string): () => Promise<void> {
  const script = 'cat; until rm -rf -- "$0" 2>/dev/null; do sleep 0.1; done';
  // A group of its own: Ctrl-C in the terminal must not reach it.
  const janitor = spawn("sh", ["-c", script, dir], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  const ended = once(janitor, "exit");
  return async () => {
    janitor.stdin.end();
    await ended;
  };
}
