import { appendFile, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Redis } from "ioredis";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { addressSeenBy } from "#infra/local/first-look.ts";
import { isPortFree } from "#infra/local/free-port.ts";
import { endEarlierLife } from "#infra/local/node-agent/earlier-life.ts";
import { makeRuntimeFolder } from "#infra/local/node-agent/runtime-folder.ts";
import { freePort } from "#test/redis.ts";
import { Installation } from "./npm-start/installation.ts";
import { LeaseClient } from "./npm-start/lease-client.ts";
import { runPrintedLines } from "./npm-start/printed-lines.ts";
import { statusThrough } from "./npm-start/through-proxy.ts";

// One installation for the whole file, in the order of its life: a start takes seconds.
const root = await mkdtemp(path.join(tmpdir(), "npm-start-"));
const dir = path.join(root, "first");
const leasePort = await freePort();
const crawler = new LeaseClient({ dir, port: leasePort });
const credentials = "crawler:not-a-secret-on-this-machine";
const patient = { timeout: 40_000, interval: 100 };
const spec = {
  provider: "local",
  auth: { secretRef: { name: "proxy-credentials" } }, // of the samples
  healthCheck: { intervalSeconds: 1 },
};
const starts: Installation[] = [];

function start(options: { dir: string; leasePort: number; once?: boolean }): Installation {
  const installation = new Installation(options);
  starts.push(installation);
  return installation;
}

async function leftInSharedMemory(serviceNames: string[]): Promise<string[]> {
  return (await readdir("/dev/shm")).filter((file) => serviceNames.some((name) => file.startsWith(`${name}-`)));
}

const runtimeFolder = (): Promise<string> => makeRuntimeFolder(path.join(dir, "pods"));

afterAll(async () => {
  for (const each of starts) await each.destroy();
  const folder = await runtimeFolder();
  await endEarlierLife(folder);
  for (const each of [folder, root]) await rm(each, { recursive: true, force: true });
});

describe("the first life of an installation", () => {
  let running: Installation;
  const other = path.join(root, "second");

  beforeAll(async () => {
    running = start({ dir, leasePort });
    await running.started();
    await running.createProxy("victim", spec);
  });

  afterAll(() => running.destroy());

  test("a second start in its folder is refused, and says who runs there", async () => {
    const second = start({ dir, leasePort: await freePort() });
    expect(await second.exited).toBe(1);
    expect(second.output).toContain(`npm start is running in this folder already (process ${running.pid})`);
  });

  test("a start whose lease port is in use is refused before anything is started", async () => {
    const second = start({ dir: other, leasePort });
    expect(await second.exited).toBe(1);
    expect(await readdir(root)).not.toContain("second");
    expect(second.output.trim()).toMatch(new RegExp(`^Port ${leasePort} of 127.0.0.1, for the lease API, is in use`));
    expect(second.output).toContain("--lease-port");
  });

  test("a second installation runs beside it: with --once it leases, fetches a page and ends with code 0", async () => {
    const second = start({ dir: other, leasePort: await freePort(), once: true });
    expect(await second.exited, second.output).toBe(0);
    expect(second.output).toMatch(/Fetched https:\S+: straight it sees 127\.0\.0\.1, through the lease 127\.\d+/);
    expect(await second.processes()).toEqual([]);
    const address = (folder: string): Promise<string> => readFile(path.join(folder, "echo.address"), "utf8");
    expect(await address(other)).not.toBe(await address(dir));
  });

  test("a product that cannot start ends the start with its last words", async () => {
    await writeFile(path.join(other, "providers.yaml"), "providers: [{name: local, type: cloud}]\n");
    const second = start({ dir: other, leasePort: await freePort() });
    expect(await second.exited).toBe(1);
    expect(second.output).toMatch(/Egress Proxies did not start: exited with code 1\n\S+: providers\[0\]\.type/);
    expect(await second.processes()).toEqual([]);
  });

  test("Ctrl-C ends everything: no process, no shared memory, no open port", async () => {
    await expect.poll(() => running.readiness("victim"), patient).toBe("Ready");
    const squids = await running.squids();
    expect(squids).toHaveLength(4);
    const serviceNames = squids.map(({ serviceName }) => serviceName);
    expect(await leftInSharedMemory(serviceNames)).not.toEqual([]);
    const ports = await Promise.all(
      [/Redis +127\.0\.0\.1:(\d+)/, /Kubernetes API +https:\S+:(\d+)/, /metrics http:\S+:(\d+)/].map((each) =>
        running.said(each),
      ),
    );
    running.kill("SIGINT");
    expect(await running.exited).toBe(0);
    expect(await running.processes()).toEqual([]);
    expect(await leftInSharedMemory(serviceNames)).toEqual([]);
    for (const port of [...ports.map(Number), leasePort]) expect(await isPortFree("127.0.0.1", port)).toBe(true);
    const echo = (await readFile(path.join(dir, "echo.address"), "utf8")).trim();
    for (const port of [8080, 8443]) expect(await isPortFree(echo, port)).toBe(true);
  });
});

describe("the second life of the installation", () => {
  let running: Installation;

  beforeAll(async () => {
    running = start({ dir, leasePort });
    await running.started();
  });

  const metricsUrl = async (): Promise<string> => await running.said(/metrics (http:\S+?),/);
  const isWhole = async (count: number): Promise<void> => {
    await expect
      .poll(async () => {
        const { squids, proxies } = await running.census();
        return squids.length === count && squids.join() === proxies.join() ? "whole" : { squids, proxies };
      }, patient)
      .toBe("whole");
  };

  test("resumes with the same instances", async () => {
    await isWhole(4);
    const incarnations = (await running.proxies()).map(({ status }) => status.instance?.incarnation);
    expect(incarnations).toEqual([1, 1, 1, 1]);
  });

  test("a Squid that is killed is not leased any more, and replaced by one other", async () => {
    await expect.poll(() => crawler.states(), patient).toMatchObject({ victim: "free" });
    const before = await running.proxy("victim");
    const squid = (await running.squids()).find(({ address }) => address === before?.status.endpoint?.host);
    process.kill(squid?.pid ?? 0, "SIGKILL");
    await expect.poll(async () => (await crawler.states())["victim"] ?? "gone", patient).not.toBe("free");
    await expect.poll(async () => (await running.proxy("victim"))?.status.instance?.incarnation, patient).toBe(2);
    await expect.poll(() => crawler.states(), patient).toMatchObject({ victim: "free" });
    await isWhole(4);
  });

  test("the product killed while it creates Proxies leaves one Squid per Proxy", async () => {
    const before = (await running.squids()).length;
    const names = ["one", "two", "three", "four", "five"].map((each) => `created-${each}`);
    for (const name of names) await running.createProxy(name, spec);
    const instances = async (): Promise<number> =>
      (await running.proxies()).filter(({ metadata, status }) => names.includes(metadata.name) && status.instance)
        .length;
    await expect.poll(instances, { ...patient, interval: 10 }).toBeGreaterThan(0);
    const killed = await running.process("functions/run.ts");
    process.kill(killed, "SIGKILL");
    await running.said(/(Egress Proxies runs again)/);
    await isWhole(before + names.length);
    expect(await running.process("functions/run.ts")).not.toBe(killed);
  });

  test("a proxy reaches the echo site from its own address, and nothing else on this machine", async () => {
    const { host = "", port = 0 } = (await running.proxy("sample-1"))?.status.endpoint ?? {};
    const url = `${await running.said(/Echo site +(https:\S+)/)}/`;
    const authority = await readFile(path.join(dir, "ca.crt"), "utf8");
    const proxyUrl = `http://${credentials}@${host}:${port}`;
    expect(await addressSeenBy({ url, authority, proxyUrl }, AbortSignal.timeout(10_000))).toBe(host);
    const admin = new URL(await metricsUrl()).host;
    const other = (await running.proxy("sample-2"))?.status.endpoint;
    const refused = [
      "169.254.169.254:80",
      "169.254.169.254:443",
      "127.0.0.1:8443", // a port that is opened, but for the echo site alone
      `127.0.0.1:${leasePort}`,
      admin,
      `${other?.host}:${other?.port}`,
    ];
    for (const target of refused) {
      for (const method of ["GET", "CONNECT"] as const) {
        expect(await statusThrough({ host, port, credentials }, method, target), `${method} ${target}`).toBe(403);
      }
    }
    for (const method of ["GET", "CONNECT"] as const) {
      expect(await statusThrough({ host, port }, method, new URL(url).host), `${method} without credentials`).toBe(407);
    }
  });

  test("Redis killed, and emptied: all proxies can be leased again, and no Squid was replaced", async () => {
    const pids = async (): Promise<number[]> => (await running.squids()).map(({ pid }) => pid).sort((a, b) => a - b);
    const before = await pids();
    const states = await crawler.states();
    expect([...new Set(Object.values(states))]).toEqual(["free"]);
    expect(Object.keys(states)).toHaveLength(before.length);

    process.kill(await running.process("redis-server"), "SIGKILL");
    await running.said(/(Redis runs again)/);
    await expect.poll(() => crawler.states(), patient).toEqual(states);

    const port = Number(await running.said(/Redis +127\.0\.0\.1:(\d+)/));
    const password = (await readFile(path.join(dir, "redis/password"), "utf8")).trim();
    const redis = new Redis({ host: "127.0.0.1", port, password });
    await redis.flushall();
    await redis.quit();
    await expect.poll(() => crawler.states(), patient).toEqual(states);
    expect(await pids()).toEqual(before);
  });

  test("a broken providers file changes nothing, and is in the log and in a metric", async () => {
    const file = path.join(dir, "providers.yaml");
    const [good, squids] = [await readFile(file, "utf8"), await running.squids()];
    onTestFinished(() => writeFile(file, good));
    await writeFile(file, good.replace("connectPorts", "conectPorts"));
    const metrics = async (): Promise<string> => (await request(await metricsUrl())).body.text();
    await expect.poll(metrics, patient).toMatch(/^proxy_operator_problems_total\{kind="providers-file"\} [1-9]/m);
    expect(await readFile(path.join(dir, "egress-proxies.log"), "utf8")).toMatch(/providers\[0\]\.\S*conectPorts/);
    expect(await running.squids()).toEqual(squids);
    expect((await running.proxies()).map(({ status }) => status.phase)).toEqual(squids.map(() => "Ready"));
  });

  test("a Proxy of an unconfigured provider says so, and becomes Ready once the file has it", async () => {
    await running.createProxy("early", { ...spec, provider: "added-later" });
    await expect.poll(() => running.readiness("early"), patient).toContain("ProviderNotConfigured");
    const echo = (await readFile(path.join(dir, "echo.address"), "utf8")).trim();
    const settings = `{allowSources: [127.0.0.0/8], connectPorts: [8443], allowDestinations: ["${echo}/32:8443"]}`;
    const entry = `  - {name: added-later, type: kubernetes, kubernetes: ${settings}}\n`;
    await appendFile(path.join(dir, "providers.yaml"), entry);
    await expect.poll(() => running.readiness("early"), patient).toBe("Ready");
  });

  test.each([
    ["README.md", /"address": "127\./],
    ["docs/lease-api.md", /"address": "127\./],
    ["docs/providers.md", /on-second condition met/],
  ])("the lines that %s prints for a shell run as they are", async (page, shown) => {
    expect(await runPrintedLines(page, { dir, leasePort })).toMatch(shown);
  });

  test("a Proxy of another namespace is served, too", async () => {
    await running.kubernetes(async (api) => {
      await api.create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "team-a" } }, "");
      const stringData = { username: "team", password: "a" };
      await api.create(
        { apiVersion: "v1", kind: "Secret", metadata: { name: "proxy-credentials" }, stringData },
        "team-a",
      );
    });
    await running.createProxy("elsewhere", spec, "team-a");
    await expect.poll(() => running.readiness("elsewhere"), patient).toBe("Ready");
  });

  test("kill -9 leaves no process behind, and the next life removes the shared memory", async () => {
    const serviceNames = (await running.squids()).map(({ serviceName }) => serviceName);
    expect(serviceNames.length).toBeGreaterThan(4);
    // Lives of Squids and of the product were ended above: their last words are in the logs, and the lines are plain.
    expect(running.output).not.toContain("\u001B");
    expect(running.output).not.toMatch(/squid.*\|/i);
    expect(await readFile(path.join(dir, "node-agent.log"), "utf8")).toContain("pod ended: ");
    running.kill("SIGKILL");
    await running.exited;
    await expect.poll(() => running.processes(), patient).toEqual([]);
    await endEarlierLife(await runtimeFolder());
    expect(await leftInSharedMemory(serviceNames)).toEqual([]);
  });
});
