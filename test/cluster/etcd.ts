import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";
import { z } from "zod";
import { type BoundProcess, startBoundProcess } from "#infra/local/bound-process.ts";
import { freePort } from "#infra/local/free-port.ts";

const readyMs = 30_000;
const revision = z.object({ header: z.object({ revision: z.string() }) });

/** Starts etcd with its data in `dir`. Resolves once it serves; rejects with its last log lines when it does not. */
export async function startEtcd(binary: string, dir: string): Promise<{ url: string; process: BoundProcess }> {
  const url = `http://127.0.0.1:${await freePort()}`;
  const peer = `http://127.0.0.1:${await freePort()}`;
  const process = await startBoundProcess({
    command: binary,
    // Nothing here outlives the run: syncing would only cost time.
    args: ["--data-dir", path.join(dir, "etcd"), "--unsafe-no-fsync", "--log-level", "warn"].concat(
      ["--listen-client-urls", url, "--advertise-client-urls", url],
      ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", `default=${peer}`],
    ),
    logFile: path.join(dir, "etcd.log"),
  });
  await untilReady("etcd", process, async (signal) => {
    const { statusCode, body } = await request(`${url}/health`, { signal });
    await body.dump();
    return statusCode === 200;
  });
  return { url, process };
}

/** Makes etcd forget everything but the newest state, as kube-apiserver has it do every five minutes. */
export async function compactEtcd(url: string): Promise<void> {
  const call = async (target: string, body: object): Promise<unknown> => {
    const answer = await request(`${url}/v3/${target}`, {
      method: "POST",
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(10_000),
    });
    const text = await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(`etcd ${target}: ${answer.statusCode} ${text}`);
    return JSON.parse(text);
  };
  const { header } = revision.parse(await call("maintenance/status", {}));
  await call("kv/compaction", { revision: header.revision, physical: true });
}

/** Polls `isReady` until it says so. Rejects, and kills the process, when that ends first or takes longer than 30 s. */
export async function untilReady(
  name: string,
  process: BoundProcess,
  isReady: (signal: AbortSignal) => Promise<boolean>,
): Promise<void> {
  const over = new AbortController();
  void process.ended.then(() => over.abort());
  const waiting = AbortSignal.any([over.signal, AbortSignal.timeout(readyMs)]);
  let last: unknown;
  while (!waiting.aborted) {
    try {
      if (await isReady(AbortSignal.any([waiting, AbortSignal.timeout(2_000)]))) return;
    } catch (error) {
      last = error; // refused until it listens
    }
    await sleep(50);
  }
  await process.stop(0);
  throw new Error(`${name} did not become ready: ${(await process.ended).reason}`, { cause: last });
}
