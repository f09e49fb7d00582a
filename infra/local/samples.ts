import { readFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseAllDocuments } from "yaml";
import type { Proxy } from "#shared/model/proxy.ts";
import { type ApiClient, type Manifest, manifest } from "./api-client.ts";

const samplesFile = path.join(import.meta.dirname, "samples/proxies.yaml");
const readyTimeoutMs = 120_000;
const pollMs = 250;

type SampleApi = Pick<ApiClient, "create" | "proxies">;

export interface SampleOptions {
  samples: readonly Manifest[];
  /** Where they go. */
  namespace: string;
  say: (line: string) => void;
}

/** The objects that `npm start` begins with. */
export async function readSamples(): Promise<Manifest[]> {
  const documents = parseAllDocuments(await readFile(samplesFile, "utf8"));
  return documents.map((document) => manifest.parse(document.toJS()));
}

/**
 * Creates the samples that are not there, and says which. What is there belongs to the user by now: to write it again
 * would undo a change, and a password put back replaces the instances of everybody who uses it.
 */
export async function createMissing(api: Pick<SampleApi, "create">, options: SampleOptions): Promise<void> {
  const { samples, namespace, say } = options;
  for (const sample of samples)
    if (await api.create(sample, namespace)) say(`${sample.kind.toLowerCase()}/${sample.metadata.name}: created`);
}

export interface WaitOptions extends SampleOptions {
  signal: AbortSignal;
  /** Shown the Proxies of the namespace whenever they were read. */
  onRead?: (proxies: readonly Proxy[]) => void;
  /** Shorter ones are for tests. */
  timeoutMs?: number;
}

/**
 * Waits until the sample Proxies are Ready, and says so for each as it goes. One that is still being deleted is awaited;
 * one that is gone is created anew. When the time is over, those that are Ready must do; throws with what holds back the
 * rest when there is none.
 */
export async function waitUntilReady(api: SampleApi, options: WaitOptions): Promise<void> {
  const { samples, namespace, say, signal, onRead, timeoutMs = readyTimeoutMs } = options;
  const names = samples.filter(({ kind }) => kind === "Proxy").map(({ metadata }) => metadata.name);
  const shown = new Map<string, string>();
  for (let deadline = Date.now() + timeoutMs; ; ) {
    const here = await api.proxies([namespace]);
    onRead?.(here);
    const found = new Map(here.map((each) => [each.metadata.name, each]));
    for (const name of names) {
      const line = summary(name, found.get(name));
      if (shown.get(name) !== line) say(line);
      shown.set(name, line);
    }
    const waiting = names.filter((name) => !isReady(found.get(name)));
    if (waiting.length === 0) return;
    if (names.some((name) => !found.has(name))) {
      await createMissing(api, options);
      deadline = Date.now() + timeoutMs;
    }
    if (Date.now() > deadline) {
      const held = `Not Ready in time:\n${waiting.map((name) => explain(name, found.get(name))).join("\n")}`;
      if (waiting.length === names.length) throw new Error(held);
      return say(held);
    }
    await sleep(pollMs, undefined, { signal });
  }
}

function isReady(proxy: Proxy | undefined): boolean {
  return proxy?.status.phase === "Ready" && proxy.metadata.deletionTimestamp === undefined;
}

function summary(name: string, proxy: Proxy | undefined): string {
  if (proxy === undefined) return `proxy/${name}: is gone`;
  const { metadata, status } = proxy;
  if (metadata.deletionTimestamp !== undefined)
    return `proxy/${name}: is still being deleted; waiting for its end, to create it anew`;
  const at = status.endpoint === undefined ? "" : ` at ${status.endpoint.host}:${status.endpoint.port}`;
  return `proxy/${name}: ${status.phase ?? "seen"}${at}`;
}

function explain(name: string, proxy: Proxy | undefined): string {
  const ready = proxy?.status.conditions?.find(({ type }) => type === "Ready");
  const deletion = proxy?.metadata.deletionTimestamp === undefined ? "" : "is being deleted: ";
  return `  proxy/${name}: ${deletion}${ready?.reason ?? "nothing yet"}: ${ready?.message ?? ""}`;
}
