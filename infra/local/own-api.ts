import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { Failure } from "#shared/errors/failure.ts";
import { proxyCrd } from "#shared/model/crd.ts";
import { issueCertificate, type KeyedCertificate } from "./certificates.ts";
import { type LocalFiles, localToken } from "./files.ts";
import { type KubernetesApi, startKubernetesApi } from "./kubernetes-api/start.ts";
import type { Place } from "./place.ts";

/** How the stack lives in the small API: alone. */
export function placeInOwnApi(files: LocalFiles): Place {
  return {
    kubeconfigFile: files.kubeconfig,
    // One at a time runs in this folder, so one that was killed may be followed at once.
    podName: "npm-start",
    productNamespace: "egress-proxies",
    // Where kubectl looks when it is told nothing else.
    samplesNamespace: "default",
    watchNamespaces: "*",
    agentNamespace: "*",
    machineAddress: undefined,
    made: undefined,
  };
}

/**
 * Starts the small API, and writes the kubeconfig for it. On the port of the last start if that is free: a kubeconfig that
 * somebody uses in a terminal stays good.
 */
export async function startOwnApi(files: LocalFiles, authority: KeyedCertificate): Promise<KubernetesApi> {
  const token = await localToken(files, "kubernetes");
  const host = "127.0.0.1";
  const issued = await issueCertificate(authority, { commonName: "kubernetes", altNames: [{ ip: host }] });
  const tls = { ...issued, authority: authority.certificate };
  const options = { host, dataFile: files.kubernetesData, crds: [proxyCrd()], token, tls };
  const portFile = path.join(files.dir, "kubernetes.port");
  const kept = Number(await readFile(portFile, "utf8").catch(() => "0"));
  const api = await startKubernetesApi({ ...options, port: kept }).catch((error: unknown) => {
    if (kept === 0 || !(error instanceof Failure) || error.code !== "PortInUse") throw error;
    return startKubernetesApi({ ...options, port: 0 });
  });
  await writeFile(portFile, new URL(api.url).port);
  await writeFile(files.kubeconfig, api.kubeconfig, { mode: 0o600 });
  return api;
}
