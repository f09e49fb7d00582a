import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { Failure } from "#shared/errors/failure.ts";
import { proxyCrd } from "#shared/model/crd.ts";
import { createLogger } from "#shared/telemetry/logger.ts";
import { startEchoSite } from "./echo-site/echo-site.ts";
import {
  ensureProvidersFile,
  type LocalFiles,
  localAuthority,
  localToken,
  makeFolders,
  writeTokensFile,
} from "./files.ts";
import { freePort } from "./free-port.ts";
import { startKubernetesApi } from "./kubernetes-api/start.ts";
import { startNodeAgent } from "./node-agent/node-agent.ts";
import { startProduct } from "./product.ts";
import { startLocalRedis } from "./redis.ts";

export interface Stack {
  kubernetes: { url: string; token: string };
  leaseApi: { url: string; token: string };
  echoUrl: string;
  authority: string;
  adminUrl: string;
  /** Process id of the functions. */
  productPid: () => number;
}

export interface StackOptions {
  files: LocalFiles;
  leasePort: number;
  say: (line: string) => void;
  /** What was started, to be stopped in reverse. Filled as it goes, so that a failed start leaves nothing. */
  parts: { add(name: string, stop: () => Promise<void>): void };
}

export const proxyNamespace = "default";
const productNamespace = "egress-proxies";
const echoHost = "127.0.0.9";
const echoPorts = { https: 8443, http: 8080 };

/** Brings up everything that the product needs on this machine, and the product itself; all of it on loopback. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { files, say, parts } = options;
  await makeFolders(files);
  const authority = await localAuthority(files);
  const redis = await startLocalRedis({ dir: files.redisDir });
  parts.add("redis", () => redis.stop());
  say(`Redis                 127.0.0.1:${redis.port}, data in ${files.redisDir}`);
  const kubernetes = await startKubernetes(files);
  parts.add("kubernetes api", () => kubernetes.stop());
  say(`Kubernetes API        ${kubernetes.url}, kubeconfig ${files.kubeconfig}`);
  const echo = await startEchoSite({ host: echoHost, authority, httpsPort: echoPorts.https, httpPort: echoPorts.http });
  parts.add("echo site", () => echo.stop());
  say(`Echo site             ${echo.httpsUrl}`);
  const log = createLogger({ levels: { level: "warn", components: {} }, pretty: true });
  const agent = await startNodeAgent({ kubeconfigFile: files.kubeconfig, dir: files.podsDir, log });
  parts.add("node agent", () => agent.stop());
  say("Node agent            runs Pods as Squid processes");
  await ensureProvidersFile(files, { host: echoHost, ports: Object.values(echoPorts) });
  const leaseToken = await localToken(files, "lease");
  await writeTokensFile(files, leaseToken);
  const adminPort = await freePort();
  const product = await startProduct({
    logFile: files.productLog,
    onDeath: (reason) => say(`Egress Proxies ended, starting it again: ${reason}`),
    env: {
      REDIS_URL: redis.url,
      KUBECONFIG: path.resolve(files.kubeconfig),
      POD_NAMESPACE: productNamespace,
      WATCH_NAMESPACES: proxyNamespace,
      PROVIDERS_FILE: path.resolve(files.providers),
      LEASE_TOKENS_FILE: path.resolve(files.tokens),
      LEASE_API_HOST: "127.0.0.1",
      LEASE_API_PORT: String(options.leasePort),
      ADMIN_HOST: "127.0.0.1",
      ADMIN_PORT: String(adminPort),
      HEALTH_CHECK_URL: `${echo.httpsUrl}/`,
      NODE_EXTRA_CA_CERTS: path.resolve(files.authority),
    },
  });
  parts.add("egress proxies", () => product.stop());
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  const leaseUrl = `http://127.0.0.1:${options.leasePort}`;
  say(`Egress Proxies        lease API ${leaseUrl}, metrics ${adminUrl}/metrics, log ${files.productLog}`);
  return {
    kubernetes: { url: kubernetes.url, token: kubernetes.token },
    leaseApi: { url: leaseUrl, token: leaseToken },
    echoUrl: `${echo.httpsUrl}/`,
    authority: authority.certificate,
    adminUrl,
    productPid: product.pid,
  };
}

/** On the port of the last start if that is free: a kubeconfig that somebody uses in a terminal stays good. */
async function startKubernetes(files: LocalFiles) {
  const token = await localToken(files, "kubernetes");
  const options = { host: "127.0.0.1", dataFile: files.kubernetesData, crds: [proxyCrd()], token };
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
