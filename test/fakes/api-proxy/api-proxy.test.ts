import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { kubectl } from "#test/kubectl.ts";
import { TestApi } from "#test/kubernetes-api.ts";
import { type ApiProxy, startApiProxy } from "./api-proxy.ts";
import { blackHole, conflict, dropRequest } from "./faults.ts";

const run = promisify(execFile);

let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start();
});
afterAll(() => api.stop());

async function begin(): Promise<ApiProxy> {
  const proxy = await startApiProxy({ backend: api.kubeconfigFile });
  onTestFinished(() => proxy.stop());
  return proxy;
}

/** What kubectl says through the proxy, or why it fails. */
async function ask(proxy: ApiProxy, ...words: string[]): Promise<string> {
  const args = ["--kubeconfig", proxy.kubeconfigFile, "--namespace", api.namespace, "--cache-dir", `${api.dir}/cache`];
  const kubectlFile = await kubectl("1.35");
  return await run(kubectlFile, [...args, ...words]).then(
    ({ stdout }) => stdout.trim(),
    (error: unknown) => String(error),
  );
}

test("Without a rule kubectl sees what it would see without the proxy, and the log says what it asked", async () => {
  const proxy = await begin();
  expect(await ask(proxy, "create", "configmap", "plain", "--from-literal=a=1")).toBe("configmap/plain created");
  expect(await ask(proxy, "wait", "--for=jsonpath={.data.a}=1", "configmap/plain", "--timeout=10s")).toBe(
    "configmap/plain condition met",
  );
  expect(await ask(proxy, "delete", "configmap", "plain")).toContain("deleted");
  expect(proxy.log()).toEqual(
    expect.arrayContaining(["create configmaps 201", "watch configmaps 200", "delete configmaps 200"]),
  );
  const [created] = proxy.requests.filter(({ verb }) => verb === "create");
  expect(created).toMatchObject({ namespace: api.namespace, name: "", subresource: "", forwarded: true });
});

test("A rule hits what it matches, from its nth request on, as often as it says, and can be taken back", async () => {
  const proxy = await begin();
  await ask(proxy, "create", "configmap", "matched");
  await ask(proxy, "create", "configmap", "other");
  const rule = proxy.rules.add({ verb: "delete", name: "matched" }, conflict, { nth: 2, times: 2 });
  expect(await ask(proxy, "delete", "configmap", "other")).toContain("deleted");
  expect(await ask(proxy, "delete", "configmap", "matched", "--dry-run=server")).toContain("deleted");
  expect(await ask(proxy, "delete", "configmap", "matched")).toContain("Conflict");
  expect(rule.hits).toBe(1);
  rule.remove();
  expect(await ask(proxy, "delete", "configmap", "matched")).toContain("deleted");
  expect(rule.hits).toBe(1);
});

test("A request that is dropped, or that a client gives up, does not reach the API server", async () => {
  const proxy = await begin();
  proxy.rules.add({ verb: "create" }, dropRequest, { times: 9 });
  expect(await ask(proxy, "create", "configmap", "dropped")).toContain("EOF");
  proxy.rules.add({ verb: "get", resource: "configmaps" }, blackHole);
  expect(await ask(proxy, "get", "configmap", "dropped", "--request-timeout=1s")).toContain("imeout");
  expect(await ask(proxy, "get", "configmap", "dropped")).toContain("NotFound");
  expect(proxy.requests.filter(({ verb, forwarded }) => verb === "create" && forwarded)).toEqual([]);
});

test("Whoever shows another token than the one that counts is refused, and the API server does not see it", async () => {
  const proxy = await begin();
  const publish = proxy.replaceToken();
  expect(await ask(proxy, "get", "configmaps")).toMatch(/logged in|Unauthorized|credentials/);
  expect(proxy.requests.some(({ forwarded }) => forwarded)).toBe(false);
  await publish();
  expect(await ask(proxy, "get", "configmaps")).not.toContain("Error");
});
