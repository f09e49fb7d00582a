import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { ClusterConnection } from "#shared/cluster/connection.ts";
import { ProxyClient } from "#shared/cluster/proxies.ts";
import { refuse } from "#test/fakes/api-proxy/faults.ts";
import { TestApi } from "#test/kubernetes-api.ts";
import { expectTold, Scene } from "./scene.ts";

let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start();
});
afterAll(() => api.stop());

const refused = { class: "Transient", code: "Unauthorized" };

test("An expired token is read anew, and the very request that found out succeeds", async () => {
  const scene = await Scene.begin(api);
  const a = await scene.create("a");
  await scene.proxy.replaceToken()();
  expect(await scene.read("a")).toEqual(a);
  await scene.proxy.replaceToken()();
  expect(await scene.client.patchStatus(a, { phase: "Pending" }, scene.call)).toMatchObject({
    status: { phase: "Pending" },
  });
  expect(scene.proxy.log().slice(-4)).toEqual([
    "get proxies 401",
    "get proxies 200",
    "patch proxies/status 401",
    "patch proxies/status 200",
  ]);
});

test("A token that is refused before there is a new one fails in a way that may pass, and is replaced at once when there is", async () => {
  const scene = await Scene.begin(api);
  const a = await scene.create("a");
  const publish = scene.proxy.replaceToken();
  await expect(scene.read("a")).rejects.toMatchObject(refused);
  await publish();
  expect(await scene.read("a")).toEqual(a);
});

test("A 401 that stays is told twice and no more", async () => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  const rule = scene.proxy.rules.add({ verb: "get" }, refuse(401, "Unauthorized"), { times: 10 });
  await expect(scene.read("a")).rejects.toMatchObject(refused);
  expect(rule.hits).toBe(2);
});

test("A watch whose token has expired goes on with the new one, without a list", async () => {
  const scene = await Scene.begin(api);
  await scene.create("a");
  const followed = await scene.follow();
  await scene.watching();
  await scene.proxy.replaceToken()();
  scene.proxy.hangUp();
  await scene.touch("a", "1");
  await expectTold(followed, ["set a 0", "set a 1"]);
  expect(scene.proxy.log()).toContain("watch proxies 401");
  expect(scene.count("list")).toBe(1);
});

test("A token file may end with a line break, and goes before a token beside it", async () => {
  const scene = await Scene.begin(api);
  const a = await scene.create("a");
  await writeFile(scene.proxy.tokenFile, `${await readFile(scene.proxy.tokenFile, "utf8")}\n`);
  const config = z.looseObject({}).parse(parse(await readFile(scene.proxy.kubeconfigFile, "utf8")));
  const users = [{ name: "tester", user: { tokenFile: "token", token: "old" } }];
  await writeFile(scene.proxy.kubeconfigFile, JSON.stringify({ ...config, users }));
  const connection = ClusterConnection.load({ kubeconfigFile: scene.proxy.kubeconfigFile, userAgent: "tester" });
  onTestFinished(() => connection.close());
  expect(await new ProxyClient({ connection }).get({ namespace: scene.namespace, name: "a" }, scene.call)).toEqual(a);
});

test("A kubeconfig that is being replaced when the token expires fails nothing for good", async () => {
  const scene = await Scene.begin(api);
  const a = await scene.create("a");
  const whole = await readFile(scene.proxy.kubeconfigFile, "utf8");
  const publish = scene.proxy.replaceToken();
  await writeFile(scene.proxy.kubeconfigFile, whole.slice(0, whole.length / 2));
  await expect(scene.read("a")).rejects.toMatchObject({ class: "Transient", code: "CredentialsUnavailable" });
  await publish();
  await writeFile(scene.proxy.kubeconfigFile, whole);
  expect(await scene.read("a")).toEqual(a);
});

test("A Pod's token that has expired is read anew", async () => {
  const scene = await Scene.begin(api);
  const a = await scene.create("a");
  const connection = await inPod(scene);
  const client = new ProxyClient({ connection });
  const read = () => client.get({ namespace: scene.namespace, name: "a" }, scene.call);
  expect(await read()).toEqual(a);
  await scene.proxy.replaceToken()();
  await copyToken(scene);
  expect(await read()).toEqual(a);
  expect(scene.proxy.log().slice(-2)).toEqual(["get proxies 401", "get proxies 200"]);
});

const podRoot = (scene: Scene): string => path.join(path.dirname(scene.proxy.tokenFile), "pod");
const accountDir = (scene: Scene): string => path.join(podRoot(scene), "var/run/secrets/kubernetes.io/serviceaccount");

async function copyToken(scene: Scene): Promise<void> {
  await writeFile(path.join(accountDir(scene), "token"), await readFile(scene.proxy.tokenFile));
}

/** A connection as in a Pod, whose files are in a folder of the test. */
async function inPod(scene: Scene): Promise<ClusterConnection> {
  const { hostname, port } = new URL(scene.proxy.url);
  vi.stubEnv("KUBERNETES_SERVICE_HOST", hostname);
  vi.stubEnv("KUBERNETES_SERVICE_PORT", port);
  onTestFinished(() => void vi.unstubAllEnvs());
  await mkdir(accountDir(scene), { recursive: true });
  await writeFile(path.join(accountDir(scene), "ca.crt"), scene.proxy.authority);
  await copyToken(scene);
  const connection = ClusterConnection.load({ userAgent: "tester", podRoot: podRoot(scene) });
  onTestFinished(() => connection.close());
  return connection;
}
