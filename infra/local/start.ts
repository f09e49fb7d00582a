import path from "node:path";
import { toFailure } from "#shared/errors/failure.ts";
import { RunningParts, stopSignal } from "#shared/process/stop.ts";
import { createLogger } from "#shared/telemetry/logger.ts";
import { checkPorts } from "./check-ports.ts";
import { checkTools } from "./check-tools.ts";
import { type LocalFiles, localFiles, makeFolders } from "./files.ts";
import { addressSeenBy, releaseLease, takeLease } from "./first-look.ts";
import { refuseIfTaken, takeFolder } from "./one-at-a-time.ts";
import { parseOptions } from "./options.ts";
import { readSamples, waitUntilReady } from "./samples.ts";
import { type Stack, startStack } from "./stack.ts";

const help = `Usage: npm start -- [options]

Runs Egress Proxies on this machine with real Redis, real Squid and a small Kubernetes API for kubectl, creates sample
Proxies, takes a lease and fetches a page through it. Ctrl-C stops everything; a second start resumes. It creates the
samples that are gone and leaves those that are there as you made them. Proxies of all namespaces are served.

Options:
  --once             stop after the first page, with exit code 0
  --dir DIR          where its data is kept (default .local)
  --lease-port PORT  port of the lease API (default 8090)
  --help             this text
`;

/** What a Proxy listens on that names no port. */
const proxyPort = 3128;
const stopTimeoutMs = 30_000;

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function main(): Promise<number> {
  const { help: wantsHelp, once, dir, leasePort } = parseOptions(process.argv.slice(2), process.env);
  if (wantsHelp) return say(help) ?? 0;
  const parts = new RunningParts(createLogger({ levels: { level: "warn", components: {} }, pretty: true }));
  const stopping = new AbortController();
  const stopped = stopSignal().then(() => {
    say("\nStopping; the data stays in its folder.");
    stopping.abort(new Error("stopped"));
  });
  try {
    const files = localFiles(dir);
    const first = run({ files, leasePort, parts, signal: stopping.signal, once });
    await Promise.race([first, stopped]);
    if (stopping.signal.aborted) return await first.then(() => 0).catch(() => 130);
    if (!once) await stopped;
    return 0;
  } finally {
    await parts.stopAll(stopTimeoutMs);
  }
}

interface RunOptions {
  files: LocalFiles;
  leasePort: number;
  parts: RunningParts;
  signal: AbortSignal;
  once: boolean;
}

async function run({ files, leasePort, parts, signal, once }: RunOptions): Promise<void> {
  // A start that is refused leaves nothing behind.
  await refuseIfTaken(files.dir);
  await checkTools(["setpriv", "redis-server", "squid"], process.env["PATH"] ?? "");
  await checkPorts({ leasePort, proxyPort });
  await makeFolders(files);
  parts.add("folder", await takeFolder(files.dir));
  const samples = await readSamples();
  const stack = await startStack({ files, leasePort, samples, signal, say, parts });
  await waitUntilReady(stack.kubernetes, { samples, say, signal });
  await showLease(stack, signal);
  if (!once) showNext(stack, files);
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

function showNext(stack: Stack, files: LocalFiles): void {
  const token = `$(cat ${path.join(files.dir, "lease.token")})`;
  say(`
What to try next, in another terminal:

  export KUBECONFIG=${files.kubeconfig}
  kubectl get proxies
  kubectl explain proxies.spec
  curl -s -H "Authorization: Bearer ${token}" -H "Content-Type: application/json" \\
    -d '{"ttlSeconds": 60}' ${stack.leaseApi.url}/v1/leases
  curl -s -H "Authorization: Bearer ${token}" ${stack.leaseApi.url}/v1/proxies
  curl --cacert ${files.authority} --proxy <the lease's proxy.url> ${stack.echoUrl}

Ctrl-C stops everything.`);
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`\n${toFailure(error).message}\n`);
    process.exit(1);
  },
);
