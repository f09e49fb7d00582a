import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Right, wantedRights } from "#infra/local/given-cluster/rights.ts";
import { makeKubeconfig } from "#infra/local/kubeconfig.ts";
import { startNodeAgent } from "#infra/local/node-agent/node-agent.ts";
import { Installation, type InstallationOptions } from "#test/integration/npm-start/installation.ts";
import { freePort } from "#test/redis.ts";
import { SomeCluster } from "./npm-start/cluster.ts";

/** `npm start` on a cluster of the user's; one cluster, in the order of its life. */
const cluster = await SomeCluster.start();
const leasePort = await freePort();
const patient = { timeout: 40_000, interval: 100 };
const samples = "egress-proxies-samples";
const pods = `/api/v1/namespaces/${samples}/pods`;
const starts: Installation[] = [];

function start(options: Partial<InstallationOptions>): Installation {
  const given = { dir: path.join(cluster.dir, "first"), leasePort, kubeconfig: cluster.adminKubeconfig, ...options };
  const installation = new Installation(given);
  starts.push(installation);
  return installation;
}

afterAll(async () => {
  for (const each of starts) await each.destroy();
  await cluster.stop();
});

describe("before it changes anything, here or there, it refuses", () => {
  afterAll(async () => {
    expect(existsSync(path.join(cluster.dir, "first"))).toBe(false);
    expect((await cluster.names("/api/v1/namespaces")).filter((name) => name.startsWith("egress"))).toEqual([]);
    expect(await cluster.names("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")).toEqual([]);
  });

  test("a cluster without Nodes, and says that the agent would do", async () => {
    const refused = start({});
    expect(await refused.exited).toBe(1);
    expect(refused.output).toMatch(/^Cluster +https:\S+, context egress-proxies-local of \S+kubeconfig\n\nThe cluster/);
    expect(refused.output).toContain("no Nodes");
    expect(refused.output).toContain("--with-agent");
  });

  test("a user without rights, and names each that is missing", async () => {
    const kubeconfig = await cluster.addUser("nobody", [{ verb: "list", group: "", resource: "nodes" }]);
    const refused = start({ kubeconfig, more: ["--with-agent"] });
    expect(await refused.exited).toBe(1);
    expect(refused.output).toContain("Missing:\n");
    for (const line of [
      `  create secrets in namespace ${samples}`,
      `  patch proxies/status.crawl.example.com in namespace ${samples}`,
      "  update leases.coordination.k8s.io egress-proxies-watcher in namespace egress-proxies",
      `  create pods/binding in namespace ${samples}`,
    ])
      expect(refused.output).toContain(line);
    expect(refused.output).not.toContain("list nodes");
  });

  test("a kubeconfig that cannot be read, and one of a server that is not there", async () => {
    const unreadable = start({ kubeconfig: path.join(cluster.dir, "absent") });
    expect(await unreadable.exited).toBe(1);
    expect(unreadable.output).toMatch(/^\ncannot read kubeconfig \S+absent: ENOENT/);
    const kubeconfig = path.join(cluster.dir, "nobody-there");
    const url = `https://127.0.0.1:${await freePort()}`;
    await writeFile(kubeconfig, makeKubeconfig({ url, token: "none", authority: cluster.admin.access.authority }));
    const unanswered = start({ kubeconfig });
    expect(await unanswered.exited).toBe(1);
    expect(unanswered.output).toContain(`${url} does not answer`);
  });
});

describe("with the agent, on a cluster without Nodes", () => {
  test("--once fetches a page and ends with 0, for a user who may do what is looked for and no more", async () => {
    const definition = { group: "apiextensions.k8s.io", resource: "customresourcedefinitions" };
    const name = "proxies.crawl.example.com";
    const rights: Right[] = [
      { verb: "create", ...definition },
      { verb: "patch", ...definition, name },
      { verb: "create", group: "", resource: "namespaces" },
      { verb: "get", group: "", resource: "namespaces" },
      ...(await wantedRights({ product: "egress-proxies", samples }, true)),
    ];
    const once = start({ kubeconfig: await cluster.addUser("starter", rights), once: true, more: ["--with-agent"] });
    expect(await once.exited, once.output).toBe(0);
    expect(once.output).toMatch(/^Cluster +https:\S+, context/);
    expect(once.output).toMatch(/Fetched https:\S+: straight it sees 127\.0\.0\.1, through the lease 127\.\d+/);
    expect(once.output).toContain(`-n ${samples} delete proxies --all`);
    expect(await once.processes()).toEqual([]);
    expect(await cluster.names(pods)).toHaveLength(3);
  });

  describe("a second start", () => {
    let running: Installation;
    let before: string[];

    beforeAll(async () => {
      before = await cluster.names(pods);
      // As if there were one: its Lease is all that can be seen of it.
      const spec = { holderIdentity: "somebody", leaseDurationSeconds: 15 };
      const lease = { metadata: { name: "kube-controller-manager" }, spec };
      await cluster.create("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", lease);
      running = start({ more: ["--with-agent"] });
      await running.started();
    });

    test("resumes with the same instances", async () => {
      expect((await cluster.names(pods)).sort()).toEqual(before.sort());
      expect(await running.squids()).toHaveLength(3);
    });

    test("warns of a controller manager, which deletes Pods of Nodes that are not there", () => {
      expect(running.output).toMatch(/A controller manager runs in this cluster \(somebody\)/);
    });

    test("is not disturbed by a start from another folder, which is told who leads", async () => {
      const second = start({
        dir: path.join(cluster.dir, "second"),
        leasePort: await freePort(),
        more: ["--with-agent"],
      });
      expect(await second.exited).toBe(1);
      expect(second.output).toMatch(
        /Another installation leads in namespace egress-proxies of this cluster: npm-start-/,
      );
      expect(second.output).toContain("--namespace");
    });

    test("serves what kubectl applies, also on the server: wait, get, describe with events", async () => {
      const spec = { provider: "local", auth: { secretRef: { name: "proxy-credentials" } } };
      const manifest = (name: string): string =>
        JSON.stringify({ apiVersion: "crawl.example.com/v1alpha1", kind: "Proxy", metadata: { name }, spec });
      const inSamples = `kubectl -n ${samples}`;
      await cluster.shell(`${inSamples} apply -f -`, manifest("applied"));
      await cluster.shell(`${inSamples} apply --server-side -f -`, manifest("on-server"));
      const waited = await cluster.shell(
        `${inSamples} wait proxy/applied proxy/on-server --for=condition=Ready --timeout=40s`,
      );
      expect(waited.output).toBe(
        ["applied", "on-server"].map((name) => `proxy.crawl.example.com/${name} condition met\n`).join(""),
      );
      const row = await cluster.shell(`${inSamples} get px on-server`);
      expect(row.output).toMatch(/on-server +local +Ready +True +127\.\d+\.\d+\.\d+ +3128 +Ready/);
      // They are written beside the runs, and those of one second are shown in any order.
      for (const reason of ["InstanceCreateRequested", "InstanceLaunched", "InstanceReady"])
        await expect
          .poll(async () => (await cluster.shell(`${inSamples} describe px on-server`)).output, patient)
          .toMatch(new RegExp(`Events:[^]*Normal +${reason} `));
    });

    test("leaves Pods of other namespaces alone", async () => {
      await cluster.create("/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
      const labels = { "egress-proxies-managed": "true" };
      const spec = { containers: [{ name: "squid", image: "squid", command: ["squid", "-N"] }] };
      await cluster.create("/api/v1/namespaces/default/pods", { metadata: { name: "foreign", labels }, spec });
      const before = await cluster.names(pods);
      await cluster.shell(`kubectl -n ${samples} delete proxy applied`);
      await expect.poll(async () => (await cluster.names(pods)).length, patient).toBe(before.length - 1);
      const { output } = await cluster.shell("kubectl -n default get pod foreign -o jsonpath={.spec.nodeName}");
      expect(output).toBe("");
    });

    test("is deleted from the cluster as it says", async () => {
      expect(await cluster.shell(`kubectl -n ${samples} delete proxies --all`)).toMatchObject({ code: 0 });
      await expect.poll(() => cluster.names(pods), patient).toEqual([]);
      await expect.poll(() => running.squids(), patient).toEqual([]);
      running.kill("SIGINT");
      expect(await running.exited).toBe(0);
      expect(await running.processes()).toEqual([]);
      const printed = /kubectl \S+ \S+ delete namespace \S+ \S+/.exec(running.output)?.[0] ?? "";
      expect(await cluster.shell(`${printed} --wait=false`)).toMatchObject({ code: 0 });
    });
  });
});

describe("on a cluster with Nodes", () => {
  const kubeconfig = cluster.adminKubeconfig;

  beforeAll(async () => {
    await cluster.create("/api/v1/nodes", { metadata: { name: "node-1" } });
    await cluster.admin.call("PATCH", "/api/v1/nodes/node-1/status", {
      body: { status: { addresses: [{ type: "InternalIP", address: "127.0.0.1" }] } },
      type: "application/merge-patch+json",
    });
  });

  /** What a cluster's controllers do before a Pod can be. */
  async function makeNamespace(name: string): Promise<void> {
    await cluster.create("/api/v1/namespaces", { metadata: { name } });
    await cluster.create(`/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: "default" } });
  }

  test("the agent is refused", async () => {
    const refused = start({ more: ["--with-agent", "--namespace", "third"] });
    expect(await refused.exited).toBe(1);
    expect(refused.output).toContain("The cluster has Nodes (node-1)");
  });

  test("the kubelets run the Pods: no Squid is started here, and a page is fetched", async () => {
    await makeNamespace("third-samples");
    const log = pino({ level: "silent" });
    const dir = path.join(cluster.dir, "kubelet");
    const kubelet = await startNodeAgent({ kubeconfigFile: kubeconfig, dir, namespace: "third-samples", log });
    onTestFinished(() => kubelet.stop());
    const once = start({ once: true, more: ["--namespace", "third"] });
    expect(await once.exited, once.output).toBe(0);
    expect(once.output).not.toContain("Node agent");
    // A namespace that was there before is not to be deleted.
    expect(once.output).toMatch(/delete namespace third\n/);
    expect(once.output).toMatch(/Fetched https:\S+: straight it sees 127\.0\.0\.1, through the lease 127\.\d+/);
  });

  test("Pods that this machine cannot reach are named, with the remedy", async () => {
    await makeNamespace("fourth-samples");
    const running = start({ more: ["--namespace", "fourth"] });
    const target = "/api/v1/namespaces/fourth-samples/pods";
    await expect.poll(() => cluster.names(target), patient).toHaveLength(3);
    // What a kubelet would say; nobody listens there.
    const state = { running: { startedAt: "2026-01-01T00:00:00Z" } };
    const containerStatuses = [{ name: "squid", image: "squid", imageID: "", ready: true, restartCount: 0, state }];
    for (const name of await cluster.names(target)) {
      const body = {
        status: { phase: "Running", podIP: "127.0.0.77", podIPs: [{ ip: "127.0.0.77" }], containerStatuses },
      };
      await cluster.admin.call("PATCH", `${target}/${name}/status`, { body, type: "application/merge-patch+json" });
    }
    const said = /proxy\/sample-1 at 127\.0\.0\.77:3128: this machine cannot reach it \((\w+)\)/;
    expect(await running.said(said)).toBe("ECONNREFUSED");
    expect(running.output).toContain("ip route add");
    running.kill("SIGINT");
    expect(await running.exited).toBe(130);
    expect(await running.processes()).toEqual([]);
  });
});
