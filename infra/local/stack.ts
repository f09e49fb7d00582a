import { appendFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { Failure } from "#shared/errors/failure.ts";
import { proxyCrd } from "#shared/model/crd.ts";
import { createLogger, type Logger } from "#shared/telemetry/logger.ts";
import { ApiClient, type Manifest } from "./api-client.ts";
import { issueCertificate, type KeyedCertificate } from "./certificates.ts";
import { chooseEchoHost } from "./echo-site/echo-host.ts";
import { startEchoSite } from "./echo-site/echo-site.ts";
import { ensureProvidersFile, type LocalFiles, localAuthority, localToken, writeTokensFile } from "./files.ts";
import { waitUntilServing } from "./first-look.ts";
import { freePort } from "./free-port.ts";
import { keepRunning, type Running } from "./keep-running.ts";
import { startKubernetesApi } from "./kubernetes-api/start.ts";
import { startNodeAgent } from "./node-agent/node-agent.ts";
import { startProduct } from "./product.ts";
import { type LocalRedis, startLocalRedis } from "./redis.ts";
import { createMissing } from "./samples.ts";

export interface Stack {
  kubernetes: ApiClient;
  leaseApi: { url: string; token: string };
  echoUrl: string;
  authority: string;
}

export interface StackOptions {
  files: LocalFiles;
  leasePort: number;
  /** What the Kubernetes API begins with. */
  samples: readonly Manifest[];
  /** Gives up waiting. */
  signal: AbortSignal;
  say: (line: string) => void;
  /** What was started, to be stopped in reverse. Filled as it goes, so that a failed start leaves nothing. */
  parts: { add(name: string, stop: () => Promise<void>): void };
}

const productNamespace = "egress-proxies";
const echoPorts = { https: 8443, http: 8080 };

/** Brings up everything that the product needs on this machine, and the product itself; all of it on loopback. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { files, say, parts } = options;
  const authority = await localAuthority(files);
  // On the same port again: everybody knows the address already.
  const redis = await keepRunning("Redis", (before?: LocalRedis) => startRedis(files, before?.port), say);
  parts.add("redis", redis.stop);
  const { url: redisUrl, port: redisPort } = redis.current();
  say(`Redis                 127.0.0.1:${redisPort}, data in ${files.redisDir}`);
  const kubernetes = await startKubernetes(files, authority);
  parts.add("kubernetes api", () => kubernetes.stop());
  say(`Kubernetes API        ${kubernetes.url}, kubeconfig ${files.kubeconfig}`);
  const echoHost = await chooseEchoHost({ file: files.echoAddress, dir: files.dir, ports: Object.values(echoPorts) });
  const echo = await startEchoSite({ host: echoHost, authority, httpsPort: echoPorts.https, httpPort: echoPorts.http });
  parts.add("echo site", () => echo.stop());
  say(`Echo site             ${echo.httpsUrl}`);
  const log = fileLogger(files.agentLog);
  const agent = await startNodeAgent({ kubeconfigFile: files.kubeconfig, dir: files.podsDir, log });
  parts.add("node agent", () => agent.stop());
  say(`Node agent            runs Pods as Squid processes, log ${files.agentLog}`);
  await ensureProvidersFile(files, { host: echoHost, ports: Object.values(echoPorts) });
  const leaseToken = await localToken(files, "lease");
  await writeTokensFile(files, leaseToken);
  const adminPort = await freePort();
  const productOptions = {
    logFile: files.productLog,
    env: {
      REDIS_URL: redisUrl,
      KUBECONFIG: files.kubeconfig,
      // One at a time runs in this folder, so one that was killed may be followed at once.
      POD_NAME: "npm-start",
      POD_NAMESPACE: productNamespace,
      WATCH_NAMESPACES: "*",
      PROVIDERS_FILE: files.providers,
      LEASE_TOKENS_FILE: files.tokens,
      LEASE_API_HOST: "127.0.0.1",
      LEASE_API_PORT: String(options.leasePort),
      ADMIN_HOST: "127.0.0.1",
      ADMIN_PORT: String(adminPort),
      HEALTH_CHECK_URL: `${echo.httpsUrl}/`,
      NODE_EXTRA_CA_CERTS: files.authority,
    },
  };
  // Before anything of ours looks: what an earlier run left half-deleted is not to be taken for what the user wants.
  const api = new ApiClient({ ...kubernetes, authority: authority.certificate });
  parts.add("api client", () => api.close());
  // The product records who it is in a namespace of its own, as an installed chart would.
  await api.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: productNamespace } }, "");
  await createMissing(api, options.samples, say);
  const product = await keepRunning("Egress Proxies", () => startProduct(productOptions), say);
  parts.add("egress proxies", product.stop);
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  await serving(product.current(), `${adminUrl}/readyz`, options.signal);
  const leaseUrl = `http://127.0.0.1:${options.leasePort}`;
  say(`Egress Proxies        lease API ${leaseUrl}, metrics ${adminUrl}/metrics, log ${files.productLog}`);
  return {
    kubernetes: api,
    leaseApi: { url: leaseUrl, token: leaseToken },
    echoUrl: `${echo.httpsUrl}/`,
    authority: authority.certificate,
  };
}

/** Waits until the product is ready. Throws its last words as soon as it dies instead: a start has nobody to repair it. */
async function serving(product: Running, readyUrl: string, signal: AbortSignal): Promise<void> {
  const died = product.ended.then((reason) => {
    throw new Failure({ class: "Permanent", code: "ProductEnded", message: `Egress Proxies did not start: ${reason}` });
  });
  await Promise.race([waitUntilServing(readyUrl, signal), died]);
}

/** For the last words of Squids, too: too much for a terminal. Appends at once, so that no line is lost with the process. */
function fileLogger(file: string): Logger {
  const destination = { write: (line: string) => appendFileSync(file, line, { mode: 0o600 }) };
  return createLogger({ levels: { level: "info", components: {} }, pretty: false, destination });
}

function startRedis(files: LocalFiles, port: number | undefined): Promise<LocalRedis> {
  return startLocalRedis({ dir: files.redisDir, ...(port === undefined ? {} : { port }) });
}

/** On the port of the last start if that is free: a kubeconfig that somebody uses in a terminal stays good. */
async function startKubernetes(files: LocalFiles, authority: KeyedCertificate) {
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
