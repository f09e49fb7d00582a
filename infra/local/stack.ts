import { appendFileSync } from "node:fs";
import { Failure } from "#shared/errors/failure.ts";
import { createLogger, type Logger } from "#shared/telemetry/logger.ts";
import { ApiClient, type Manifest } from "./api-client.ts";
import type { KeyedCertificate } from "./certificates.ts";
import { chooseEchoHost } from "./echo-site/echo-host.ts";
import { type EchoSite, startEchoSite } from "./echo-site/echo-site.ts";
import { ensureProvidersFile, type LocalFiles, localAuthority, localToken, writeTokensFile } from "./files.ts";
import { waitUntilServing } from "./first-look.ts";
import { freePort } from "./free-port.ts";
import { keepRunning, type Running } from "./keep-running.ts";
import { startNodeAgent } from "./node-agent/node-agent.ts";
import { placeInOwnApi, startOwnApi } from "./own-api.ts";
import type { Place } from "./place.ts";
import { startProduct } from "./product.ts";
import { type LocalRedis, startLocalRedis } from "./redis.ts";
import { createMissing } from "./samples.ts";

export interface Stack {
  place: Place;
  kubernetes: ApiClient;
  leaseApi: { url: string; token: string };
  echoUrl: string;
  authority: string;
}

export interface StackOptions {
  files: LocalFiles;
  leasePort: number;
  /** In somebody's cluster, which is prepared; undefined: a small API is brought up. */
  place: Place | undefined;
  /** What the Kubernetes API begins with. */
  samples: readonly Manifest[];
  /** Gives up waiting. */
  signal: AbortSignal;
  say: (line: string) => void;
  /** What was started, to be stopped in reverse. Filled as it goes, so that a failed start leaves nothing. */
  parts: { add(name: string, stop: () => Promise<void>): void };
}

const echoPorts = { https: 8443, http: 8080 };

/** Brings up everything that the product needs on this machine, and the product itself; what can be is on loopback. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { files, parts, samples, say } = options;
  const authority = await localAuthority(files);
  const redisUrl = await startRedis(options);
  const place = options.place ?? (await startOwnKubernetes(options, authority));
  const echo = await startEcho(options, place, authority);
  await startAgent(options, place);
  const kubernetes = new ApiClient(place);
  parts.add("api client", () => kubernetes.close());
  if (options.place === undefined) await createProductNamespace(kubernetes, place);
  // Before anything of ours looks: what an earlier run left half-deleted is not to be taken for what the user wants.
  await createMissing(kubernetes, { samples, namespace: place.samplesNamespace, say });
  const leaseApi = await startServing(options, place, { redisUrl, echo });
  return { place, kubernetes, leaseApi, echoUrl: `${echo.httpsUrl}/`, authority: authority.certificate };
}

/** Answers with its url. */
async function startRedis({ files, say, parts }: StackOptions): Promise<string> {
  const start = (before?: LocalRedis): Promise<LocalRedis> =>
    // On the same port again: everybody knows the address already.
    startLocalRedis({ dir: files.redisDir, ...(before === undefined ? {} : { port: before.port }) });
  const redis = await keepRunning("Redis", start, say);
  parts.add("redis", redis.stop);
  const { url, port } = redis.current();
  say(`Redis                 127.0.0.1:${port}, data in ${files.redisDir}`);
  return url;
}

async function startOwnKubernetes({ files, say, parts }: StackOptions, authority: KeyedCertificate): Promise<Place> {
  const api = await startOwnApi(files, authority);
  parts.add("kubernetes api", () => api.stop());
  say(`Kubernetes API        ${api.url}, kubeconfig ${files.kubeconfig}`);
  return placeInOwnApi(files);
}

/** The product records who it is in a namespace of its own, as an installed chart would. */
async function createProductNamespace(kubernetes: ApiClient, { productNamespace: name }: Place): Promise<void> {
  await kubernetes.create({ apiVersion: "v1", kind: "Namespace", metadata: { name } }, "");
}

async function startEcho(options: StackOptions, place: Place, authority: KeyedCertificate): Promise<EchoSite> {
  const { files, say, parts } = options;
  const ports = Object.values(echoPorts);
  const host = place.machineAddress ?? (await chooseEchoHost({ file: files.echoAddress, dir: files.dir, ports }));
  const echo = await startEchoSite({ host, authority, httpsPort: echoPorts.https, httpPort: echoPorts.http });
  parts.add("echo site", () => echo.stop());
  say(`Echo site             ${echo.httpsUrl}`);
  const isOpened = await ensureProvidersFile(files, { host, ports, isLoopback: place.machineAddress === undefined });
  if (!isOpened) say(`Providers             ${files.providers} does not open ${host}: remove it to have it made anew`);
  return echo;
}

async function startAgent({ files, say, parts }: StackOptions, place: Place): Promise<void> {
  const { agentNamespace: namespace, kubeconfigFile } = place;
  if (namespace === undefined) return;
  const log = fileLogger(files.agentLog);
  const agent = await startNodeAgent({ kubeconfigFile, namespace, dir: files.podsDir, log });
  parts.add("node agent", () => agent.stop());
  say(`Node agent            runs Pods as Squid processes, log ${files.agentLog}`);
}

/** Starts the product and waits until it serves. */
async function startServing(
  { files, leasePort, signal, say, parts }: StackOptions,
  place: Place,
  { redisUrl, echo }: { redisUrl: string; echo: EchoSite },
): Promise<Stack["leaseApi"]> {
  const token = await localToken(files, "lease");
  await writeTokensFile(files, token);
  const adminPort = await freePort();
  const env = {
    REDIS_URL: redisUrl,
    KUBECONFIG: place.kubeconfigFile,
    POD_NAME: place.podName,
    POD_NAMESPACE: place.productNamespace,
    WATCH_NAMESPACES: place.watchNamespaces,
    PROVIDERS_FILE: files.providers,
    LEASE_TOKENS_FILE: files.tokens,
    LEASE_API_HOST: "127.0.0.1",
    LEASE_API_PORT: String(leasePort),
    ADMIN_HOST: "127.0.0.1",
    ADMIN_PORT: String(adminPort),
    HEALTH_CHECK_URL: `${echo.httpsUrl}/`,
    NODE_EXTRA_CA_CERTS: files.authority,
  };
  const product = await keepRunning("Egress Proxies", () => startProduct({ logFile: files.productLog, env }), say);
  parts.add("egress proxies", product.stop);
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  await serving(product.current(), `${adminUrl}/readyz`, signal);
  const url = `http://127.0.0.1:${leasePort}`;
  say(`Egress Proxies        lease API ${url}, metrics ${adminUrl}/metrics, log ${files.productLog}`);
  return { url, token };
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
