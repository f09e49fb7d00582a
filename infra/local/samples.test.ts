import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Agent, request } from "undici";
import { expect, onTestFinished, test } from "vitest";
import { proxyCrd } from "#shared/model/crd.ts";
import { ApiClient } from "./api-client.ts";
import { issueCertificate, makeAuthority } from "./certificates.ts";
import { startKubernetesApi } from "./kubernetes-api/start.ts";
import { createMissing, readSamples, waitUntilReady } from "./samples.ts";

const secret = "/api/v1/namespaces/default/secrets/proxy-credentials";
const proxyAt = (name: string): string => `/apis/crawl.example.com/v1alpha1/namespaces/default/proxies/${name}`;
const names = ["sample-1", "sample-2", "sample-3"];

/** The samples in an API of their own, with nobody who makes them Ready. */
async function setUp() {
  const dir = await mkdtemp(path.join(tmpdir(), "samples-"));
  const host = "127.0.0.1";
  const signer = await makeAuthority();
  const authority = signer.certificate;
  const issued = await issueCertificate(signer, { commonName: "kubernetes", altNames: [{ ip: host }] });
  const server = await startKubernetesApi({
    port: 0,
    host,
    tls: { ...issued, authority },
    dataFile: path.join(dir, "state.json"),
    crds: [proxyCrd()],
  });
  const kubeconfigFile = path.join(dir, "kubeconfig");
  await writeFile(kubeconfigFile, server.kubeconfig, { mode: 0o600 });
  const api = new ApiClient({ kubeconfigFile });
  const agent = new Agent({ connect: { ca: authority } });
  onTestFinished(async () => {
    await Promise.all([api.close(), agent.destroy()]);
    await server.stop();
    await rm(dir, { recursive: true });
  });
  const call = async (method: "GET" | "PATCH" | "DELETE", target: string, body?: object): Promise<string> => {
    const headers = { authorization: `Bearer ${server.token}`, "content-type": "application/merge-patch+json" };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await request(`${server.url}${target}`, { method, dispatcher: agent, headers, ...sent });
    return await answer.body.text();
  };
  const lines: string[] = [];
  const say = (line: string): void => {
    lines.push(line);
  };
  const options = { samples: await readSamples(), namespace: "default", say };
  await createMissing(api, options);
  return {
    api,
    call,
    lines,
    create: () => createMissing(api, options),
    wait: (timeoutMs?: number) => {
      const signal = AbortSignal.timeout(20_000);
      return waitUntilReady(api, { ...options, signal, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    },
    ready: (name: string) => call("PATCH", `${proxyAt(name)}/status`, { status: { phase: "Ready" } }),
  };
}

test("samples that are there stay as the user changed them, and those that are gone are created", async () => {
  const { call, lines, create } = await setUp();
  expect(lines).toEqual(["secret/proxy-credentials: created", ...names.map((name) => `proxy/${name}: created`)]);
  lines.length = 0;
  await call("PATCH", secret, { data: { password: "bmV3" } });
  await call("PATCH", proxyAt("sample-1"), { spec: { maxLeases: 9 } });
  await call("DELETE", proxyAt("sample-2"));
  await create();
  expect(lines).toEqual(["proxy/sample-2: created"]);
  expect(await call("GET", secret)).toContain('"password":"bmV3"');
  expect(await call("GET", proxyAt("sample-1"))).toContain('"maxLeases":9');
});

test("a sample whose deletion was begun is awaited, which is said, and then created anew", async () => {
  const { call, lines, create, wait, ready } = await setUp();
  await call("PATCH", proxyAt("sample-2"), { metadata: { finalizers: ["crawl.example.com/instance"] } });
  for (const name of names) await ready(name);
  await call("DELETE", proxyAt("sample-2"));
  await create();
  const waiting = wait();
  await expect.poll(() => lines).toContainEqual(expect.stringMatching(/^proxy\/sample-2: is still being deleted/));
  await call("PATCH", proxyAt("sample-2"), { metadata: { finalizers: null } });
  await expect.poll(() => lines.filter((line) => line === "proxy/sample-2: created")).toHaveLength(2);
  await ready("sample-2");
  await waiting;
  expect(lines.at(-1)).toBe("proxy/sample-2: Ready");
});

test("a sample that vanishes during the wait is created anew", async () => {
  const { call, lines, wait, ready } = await setUp();
  const waiting = wait();
  await call("DELETE", proxyAt("sample-3"));
  await expect.poll(() => lines.filter((line) => line === "proxy/sample-3: created")).toHaveLength(2);
  for (const name of names) await ready(name);
  await waiting;
});

test("when the time is over every sample is named that is not Ready, and those that are must do", async () => {
  const { call, lines, wait, ready } = await setUp();
  await call("PATCH", proxyAt("sample-2"), { metadata: { finalizers: ["crawl.example.com/instance"] } });
  await call("DELETE", proxyAt("sample-2"));
  await expect(wait(0)).rejects.toThrow(
    /^Not Ready in time:\n {2}proxy\/sample-1: nothing yet.*\n {2}proxy\/sample-2: is being deleted.*\n {2}proxy\/sample-3: nothing yet/,
  );
  await ready("sample-1");
  await wait(0);
  expect(lines.at(-1)).toMatch(/^Not Ready in time:\n {2}proxy\/sample-2: is being deleted.*\n {2}proxy\/sample-3:/);
});
