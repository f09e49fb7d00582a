import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Fleet } from "#shared/fleet/fleet.ts";
import { Metrics } from "#shared/telemetry/metrics.ts";
import { fleetEntry } from "#test/fakes/fleet-entry.ts";
import { startJobRig } from "#test/integration/jobs/rig.ts";
import { testContext } from "#test/process-context.ts";
import { forgetGoneProxies, startFunctions } from "./functions.ts";

async function providersFile(...names: string[]): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "providers-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const location = path.join(folder, "providers.yaml");
  await writeFile(location, JSON.stringify({ providers: names.map((name) => ({ name, type: "kubernetes" })) }));
  return location;
}

test("a verdict makes a job in a queue that somebody works on, also when the provider is not configured", async () => {
  const { server, redis, producer } = await startJobRig();
  const fleet = new Fleet({ redis, random: () => 0 });
  const probe = { intervalSeconds: 15, timeoutSeconds: 1, healthyThreshold: 1, unhealthyThreshold: 1 };
  // Nothing listens on this port, so each gets its verdict with the first probe.
  for (const provider of ["lab", "gone"])
    await fleet.upsert(fleetEntry({ provider, name: provider, uid: provider, port: 1, probe }), 1);
  const { context } = testContext({ REDIS_URL: server.url, PROVIDERS_FILE: await providersFile("lab") });
  await startFunctions(context, ["health-probe"]);
  const waiting = async (provider?: string): Promise<number> =>
    (await producer.depth(provider === undefined ? { fn: "reconcile" } : { fn: "reconcile", provider })).waiting;
  await expect
    .poll(async () => [await waiting("lab"), await waiting(), await waiting("gone")], { timeout: 10_000 })
    .toEqual([1, 1, 0]);
});

test("a deleted Proxy leaves the metrics of every process that probed it, also after a probe that came late", async () => {
  const metrics = new Metrics();
  const probed = (proxy: string): void => metrics.observeProbe({ provider: "lab", proxy, seconds: 1, ok: false });
  for (const proxy of ["crawl/stays", "crawl/gone"]) probed(proxy);
  const names = async (): Promise<Set<string>> => {
    probed("crawl/new"); // after the registry was asked
    return new Set(["crawl/stays"]);
  };
  await forgetGoneProxies(metrics, { names });
  const text = await metrics.registry.metrics();
  expect(text).not.toContain("crawl/gone");
  expect(text).toMatch(/failures_total\{proxy="crawl\/stays"\} 1[^]*failures_total\{proxy="crawl\/new"\} 1/);
});
