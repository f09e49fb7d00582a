import { request as httpRequest } from "node:http";
import { text } from "node:stream/consumers";
import { fetch, ProxyAgent } from "undici";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type KeyedCertificate, makeAuthority } from "../certificates.ts";
import { type EchoSite, startEchoSite } from "../echo-site/echo-site.ts";
import { freePort } from "../free-port.ts";
import { login, ScratchNode, sharedMemoryOf, squidsOf } from "./scratch-node.ts";

const basic = `Basic ${Buffer.from(`${login.username}:${login.password}`).toString("base64")}`;
let authority: KeyedCertificate;
let echo: EchoSite;
let node: ScratchNode;
let port: number;

beforeAll(async () => {
  authority = await makeAuthority();
  echo = await startEchoSite({ host: "127.0.0.11", authority, httpsPort: 0, httpPort: 0 });
});
afterAll(() => echo.stop());
beforeEach(async () => {
  [node, port] = [await ScratchNode.make(), await freePort()];
});
afterEach(() => node.remove());

const patience = { timeout: 20_000, interval: 50 };
const open = (): string[] => [echo.httpsUrl, echo.httpUrl].map((url) => `127.0.0.11/32:${new URL(url).port}`);

async function becomesReady(name: string): Promise<string> {
  await expect.poll(() => node.isReady(name), patience).toBe("True");
  return (await node.pod(name))?.status?.podIP ?? "";
}

async function becomesGone(name: string): Promise<void> {
  await expect.poll(() => node.pod(name), patience).toBeUndefined();
}

/** Status and body of a plain GET through the proxy. */
function getThrough(address: string, url: string, headers: Record<string, string>): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: address, port, path: url, headers, agent: false }, (response) => {
      text(response).then((body) => resolve([response.statusCode ?? 0, body]), reject);
    });
    request.on("error", reject).end();
  });
}

test("a Pod of the provider becomes a Squid that a site sees by the Pod's own address, over TLS and plain", async () => {
  await node.startAgent();
  for (const name of ["one", "two"]) await node.createPod(name, { port, allowDestinations: open() });
  const addresses = [await becomesReady("one"), await becomesReady("two")];
  expect(new Set(addresses).size).toBe(2);
  for (const address of addresses) {
    const dispatcher = new ProxyAgent({
      uri: `http://${address}:${port}`,
      token: basic,
      requestTls: { ca: authority.certificate },
    });
    const answer = await fetch(`${echo.httpsUrl}/page`, { dispatcher });
    expect(await answer.json()).toMatchObject({ address, path: "/page" });
    await dispatcher.close();
    const [status, body] = await getThrough(address, `${echo.httpUrl}/plain`, { "Proxy-Authorization": basic });
    expect(status).toBe(200);
    expect(JSON.parse(body)).toMatchObject({ address, path: "/plain" });
  }
});

test("a Pod never gets an address on which somebody else listens, though it had it before", async () => {
  await node.createPod("one", { port });
  const had = { podIP: "127.70.201.2" };
  const body = await node.core.readNamespacedPod({ namespace: "default", name: "one" });
  body.status = had;
  await node.core.replaceNamespacedPodStatus({ namespace: "default", name: "one", body });
  const other = await startEchoSite({ host: had.podIP, authority, httpsPort: 0, httpPort: 0 });
  await node.startAgent();
  expect(await becomesReady("one")).not.toBe(had.podIP);
  await other.stop();
});

test("without credentials it asks for them, and no other loopback service can be reached through it", async () => {
  await node.startAgent();
  await node.createPod("one", { port, allowDestinations: open() });
  const address = await becomesReady("one");
  expect((await getThrough(address, `${echo.httpUrl}/`, {}))[0]).toBe(407);
  const other = await startEchoSite({ host: "127.0.0.12", authority, httpsPort: 0, httpPort: 0 });
  expect((await getThrough(address, `${other.httpUrl}/`, { "Proxy-Authorization": basic }))[0]).toBe(403);
  await other.stop();
});

test("the status is what a kubelet would write", async () => {
  await node.startAgent();
  await node.createPod("one", { port });
  const podIP = await becomesReady("one");
  const pod = await node.pod("one");
  expect(podIP).toMatch(/^127\.(6[4-9]|[7-9]\d|1[0-2]\d)\./);
  expect(pod?.spec?.nodeName).toBe("egress-proxies-local");
  expect(pod?.status).toMatchObject({ phase: "Running", podIPs: [{ ip: podIP }], hostIP: "127.0.0.1" });
  expect(pod?.status?.containerStatuses).toMatchObject([
    { name: "squid", ready: true, started: true, restartCount: 0 },
  ]);
});

test("a Squid that dies makes a Pod that is never restarted Failed, says how, and leaves nothing behind", async () => {
  await node.startAgent();
  const uid = await node.createPod("one", { port });
  await becomesReady("one");
  const [pid = 0] = await squidsOf(uid);
  process.kill(pid, "SIGKILL");
  await expect.poll(async () => (await node.pod("one"))?.status?.phase, patience).toBe("Failed");
  const status = (await node.pod("one"))?.status;
  expect(status?.message).toMatch(/^ended by SIGKILL/);
  expect(status?.containerStatuses?.[0]).toMatchObject({ ready: false, state: { terminated: { exitCode: 128 } } });
  expect([await squidsOf(uid), await sharedMemoryOf(uid)]).toEqual([[], []]);
});

test("a Squid that cannot start is reported with its last log lines", async () => {
  await node.startAgent();
  await node.createPod("one", { port, change: (pod) => void pod.spec?.containers[0]?.command?.push("-f", "/nowhere") });
  await expect
    .poll(async () => (await node.pod("one"))?.status?.message, patience)
    .toMatch(/exited with code 1[^]*nowhere/);
});

test("a Pod that is to be restarted gets a new Squid at the same address", async () => {
  await node.startAgent();
  const uid = await node.createPod("one", {
    port,
    change: (pod) => Object.assign(pod.spec ?? {}, { restartPolicy: "Always" }),
  });
  const address = await becomesReady("one");
  const [pid = 0] = await squidsOf(uid);
  process.kill(pid, "SIGKILL");
  await expect
    .poll(async () => (await node.pod("one"))?.status?.containerStatuses?.[0]?.restartCount, patience)
    .toBe(1);
  expect(await becomesReady("one")).toBe(address);
  expect(await squidsOf(uid)).not.toContain(pid);
});

test("a deleted Pod goes only after its Squid, and nothing of it stays", async () => {
  await node.startAgent();
  const uid = await node.createPod("one", { port });
  await becomesReady("one");
  expect(await squidsOf(uid)).toHaveLength(1);
  await node.core.deleteNamespacedPod({ namespace: "default", name: "one" });
  await becomesGone("one");
  expect([await squidsOf(uid), await sharedMemoryOf(uid)]).toEqual([[], []]);
});

test("a Pod that somebody deletes by force loses its Squid", async () => {
  await node.startAgent();
  const uid = await node.createPod("one", { port });
  await becomesReady("one");
  await node.core.deleteNamespacedPod({ namespace: "default", name: "one", body: { gracePeriodSeconds: 0 } });
  await expect.poll(() => squidsOf(uid), patience).toEqual([]);
  await expect.poll(() => sharedMemoryOf(uid), patience).toEqual([]);
});

test("when the agent is killed its Squids die, and the next agent starts them at the same addresses", async () => {
  const first = await node.spawnAgent();
  const uid = await node.createPod("one", { port, allowDestinations: open() });
  const address = await becomesReady("one");
  const [pid = 0] = await squidsOf(uid);
  await first.kill();
  await expect.poll(() => squidsOf(uid), patience).toEqual([]);
  await node.startAgent();
  await expect.poll(() => squidsOf(uid), patience).toHaveLength(1);
  expect(await squidsOf(uid)).not.toContain(pid);
  expect(await becomesReady("one")).toBe(address);
  await expect
    .poll(
      async () => (await getThrough(address, `${echo.httpUrl}/`, { "Proxy-Authorization": basic }).catch(() => [0]))[0],
      patience,
    )
    .toBe(200);
});

test("an agent that stops ends its Squids without a trace, and leaves the Pods to the next one", async () => {
  const agent = await node.startAgent();
  const uid = await node.createPod("one", { port });
  await becomesReady("one");
  await agent.stop();
  expect([await squidsOf(uid), await sharedMemoryOf(uid)]).toEqual([[], []]);
  expect((await node.pod("one"))?.metadata?.deletionTimestamp).toBeUndefined();
});

test("a Pod that was deleted while no agent ran goes when one runs again", async () => {
  const first = await node.startAgent();
  await node.createPod("one", { port });
  await becomesReady("one");
  await first.stop();
  await node.core.deleteNamespacedPod({ namespace: "default", name: "one" });
  expect(await node.pod("one")).toBeDefined();
  await node.startAgent();
  await becomesGone("one");
});

test("a Pod whose Secret is missing waits for it and says so", async () => {
  await node.startAgent();
  await node.createPod("one", { port, withSecret: false });
  await expect
    .poll(async () => (await node.pod("one"))?.status?.containerStatuses?.[0]?.state?.waiting?.message, patience)
    .toBe('MountVolume failed: secret "one" not found');
  const data = {
    "squid.conf": Buffer.from(
      `http_port ${port}\nvisible_hostname x\npid_filename none\ncache_log /dev/null\npinger_enable off\n`,
    ).toString("base64"),
  };
  await node.core.createNamespacedSecret({ namespace: "default", body: { metadata: { name: "one" }, data } });
  await becomesReady("one");
});

test("a Pod that runs anything but squid is refused, and one of another node is left alone", async () => {
  await node.startAgent();
  await node.createPod("other", { port, change: (pod) => Object.assign(pod.spec ?? {}, { nodeName: "elsewhere" }) });
  await node.createPod("evil", {
    port,
    change: (pod) => Object.assign(pod.spec?.containers[0] ?? {}, { command: ["/bin/sh"] }),
  });
  await expect.poll(async () => (await node.pod("evil"))?.status?.message, patience).toMatch(/runs squid only/);
  expect((await node.pod("other"))?.status?.phase).toBe("Pending");
});
