import { accessSync, constants } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";

/** What is built; the folder in the cache is named by it. */
export const versions = { kubernetes: "1.37.2", etcd: "3.7.3" };

/** Paths of the two programs that make a control plane for tests. */
export interface Binaries {
  etcd: string;
  apiServer: string;
}

/** Where a build puts them: outside the checkout, so that a fresh clone finds them again. */
export function builtFolder(env: NodeJS.ProcessEnv = process.env): string {
  const cache = env["XDG_CACHE_HOME"] || path.join(homedir(), ".cache");
  const name = `control-plane-kubernetes-${versions.kubernetes}-etcd-${versions.etcd}`;
  return path.join(cache, "egress-proxies", name);
}

/**
 * etcd and kube-apiserver from KUBEBUILDER_ASSETS (what setup-envtest of controller-runtime prints), else from the cache.
 * undefined: they are to be built. Throws when KUBEBUILDER_ASSETS names a folder that lacks one of them.
 */
export function findBinaries(env: NodeJS.ProcessEnv = process.env): Binaries | undefined {
  const assets = env["KUBEBUILDER_ASSETS"];
  if (!assets) return binariesIn(builtFolder(env));
  const found = binariesIn(path.resolve(assets));
  if (found === undefined)
    throw new Error(
      `KUBEBUILDER_ASSETS is ${assets}, which does not hold etcd and kube-apiserver: correct it, or unset it to have both built`,
    );
  return found;
}

function binariesIn(folder: string): Binaries | undefined {
  const binaries = { etcd: path.join(folder, "etcd"), apiServer: path.join(folder, "kube-apiserver") };
  return Object.values(binaries).every(isExecutable) ? binaries : undefined;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false; // absent or not for us: the same here
  }
}
