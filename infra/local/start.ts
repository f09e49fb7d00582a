import { toFailure } from "#shared/errors/failure.ts";
import { RunningParts, stopSignal } from "#shared/process/stop.ts";
import { createLogger } from "#shared/telemetry/logger.ts";
import { checkPorts } from "./check-ports.ts";
import { checkTools } from "./check-tools.ts";
import { clusterFolder, keepIdentity, type LocalFiles, localFiles, localIdentity, makeFolders } from "./files.ts";
import { addressSeenBy, releaseLease, takeLease } from "./first-look.ts";
import { type Context, contextOf } from "./given-cluster/context.ts";
import { joinCluster } from "./given-cluster/join.ts";
import { PodReach } from "./given-cluster/pod-reach.ts";
import { refuseIfTaken, takeFolder } from "./one-at-a-time.ts";
import { type ClusterOptions, parseOptions, type StartOptions } from "./options.ts";
import type { Place } from "./place.ts";
import { readSamples, type WaitOptions, waitUntilReady } from "./samples.ts";
import { type Stack, startStack } from "./stack.ts";
import { howToDelete, whatNext } from "./what-next.ts";

const help = `Usage: npm start -- [options]

Runs Egress Proxies on this machine with real Redis, real Squid and a small Kubernetes API for kubectl, creates sample
Proxies, takes a lease and fetches a page through it. Ctrl-C stops everything; a second start resumes. It creates the
samples that are gone and leaves those that are there as you made them. Proxies of all namespaces are served.

Options:
  --once             stop after the first page, with exit code 0
  --dir DIR          where its data is kept (default .local)
  --lease-port PORT  port of the lease API (default 8090)
  --help             this text

On a cluster of yours, instead of the small API:
  --kubeconfig FILE  the current context of FILE; its kubelets run the Pods. Says what is missing before it changes
                     anything. Proxies stay when it ends; it then says how to delete what it made
  --with-agent       runs the Pods on this machine, as Squid processes: for a cluster without Nodes
  --namespace NAME   where the product keeps its own objects (default egress-proxies); Proxies are served in NAME-samples
`;

/** What a Proxy listens on that names no port. */
const proxyPort = 3128;
const stopTimeoutMs = 30_000;

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function main(): Promise<number> {
  const { help: wantsHelp, ...options } = parseOptions(process.argv.slice(2), process.env);
  if (wantsHelp) return say(help) ?? 0;
  const parts = new RunningParts(createLogger({ levels: { level: "warn", components: {} }, pretty: true }));
  const stopping = new AbortController();
  const stopped = stopSignal().then(() => {
    say("\nStopping; the data stays in its folder.");
    stopping.abort(new Error("stopped"));
  });
  try {
    const first = run({ ...options, parts, signal: stopping.signal });
    await Promise.race([first, stopped]);
    if (stopping.signal.aborted) return await first.then(() => 0).catch(() => 130);
    if (!options.once) await stopped;
    return 0;
  } finally {
    await parts.stopAll(stopTimeoutMs);
  }
}

type RunOptions = Omit<StartOptions, "help"> & { parts: RunningParts; signal: AbortSignal };

/** Up to the first page. */
async function run({ dir, leasePort, once, cluster, parts, signal }: RunOptions): Promise<void> {
  const context = cluster === undefined ? undefined : contextOf(cluster.kubeconfigFile);
  const files = localFiles(context === undefined ? dir : clusterFolder(dir, context.server, cluster?.namespace ?? ""));
  const runsPods = cluster === undefined || cluster.withAgent;
  // A start that is refused leaves nothing behind.
  await refuseIfTaken(files.dir);
  await checkTools(["setpriv", "redis-server", ...(runsPods ? ["squid"] : [])], process.env["PATH"] ?? "");
  await checkPorts({ leasePort, ...(runsPods ? { proxyPort } : {}) });
  const given = cluster && context && (await join(cluster, context, { files, parts, signal }));
  await makeFolders(files);
  parts.add("folder", await takeFolder(files.dir));
  if (given !== undefined) await keepIdentity(files, given.podName);
  const samples = await readSamples();
  const stack = await startStack({ files, leasePort, place: given, samples, signal, say, parts });
  const { samplesNamespace: namespace } = stack.place;
  await waitUntilReady(stack.kubernetes, { samples, namespace, say, signal, ...(given && lookAtPods(parts)) });
  await showLease(stack, signal);
  if (!once) say(whatNext(stack, files));
}

async function join(
  cluster: ClusterOptions,
  { server, name }: Context,
  { files, parts, signal }: Pick<RunOptions, "parts" | "signal"> & { files: LocalFiles },
): Promise<Place> {
  say(`Cluster               ${server}, context ${name} of ${cluster.kubeconfigFile}`);
  const place = await joinCluster({ ...cluster, identity: await localIdentity(files), say, signal });
  // Its words are the last ones: parts end in reverse, and what is added later before it.
  parts.add("closing words", () => say(howToDelete(place)));
  return place;
}

/** Only in somebody's cluster: Pods on this machine can be reached. */
function lookAtPods(parts: RunningParts): Pick<WaitOptions, "onRead"> {
  const reach = new PodReach({ say });
  parts.add("pod reach", () => reach.stop());
  return { onRead: (proxies) => reach.look(proxies) };
}

async function showLease(stack: Stack, signal: AbortSignal): Promise<void> {
  const lease = await takeLease(stack.leaseApi, signal);
  say(`\nLeased proxy/${lease.proxy.name} (${lease.proxy.host}:${lease.proxy.port}) until ${lease.expiresAt}`);
  const site = { url: stack.echoUrl, authority: stack.authority };
  const straight = await addressSeenBy(site, signal);
  const through = await addressSeenBy({ ...site, proxyUrl: lease.proxy.url }, signal);
  say(`Fetched ${stack.echoUrl}: straight it sees ${straight}, through the lease ${through}`);
  await releaseLease(stack.leaseApi, lease, signal);
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`\n${toFailure(error).message}\n`);
    process.exit(1);
  },
);
