import { execFile, spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { kubectl, kubectlVersions } from "#test/kubectl.ts";
import { TestApi } from "#test/kubernetes-api.ts";

const firstFetchMs = 300_000;

describe.each(kubectlVersions)("kubectl %s", async (version) => {
  const api = await TestApi.start();
  afterAll(() => api.stop());
  const binary = kubectl(version);
  // HOME: its discovery cache goes where the test's other files are.
  const env = { PATH: process.env["PATH"], KUBECONFIG: api.kubeconfigFile, HOME: api.dir };

  /** Runs it to its end. `output` is all that it printed. */
  async function run(
    line: string,
    options: { input?: string; env?: object } = {},
  ): Promise<{ code: number; output: string }> {
    const file = await binary;
    return new Promise((resolve) => {
      const child = execFile(
        file,
        line.split(" "),
        { env: { ...env, ...options.env }, timeout: 30_000 },
        (error, out, err) => resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: out + err }),
      );
      child.stdin?.end(options.input ?? "");
    });
  }
  const manifest = (name: string, spec: object = { provider: "lab" }): string =>
    JSON.stringify({ apiVersion: "crawl.example.com/v1alpha1", kind: "Proxy", metadata: { name }, spec });
  const apply = (name: string, spec?: object) => run("apply -f -", { input: manifest(name, spec) });
  const ready = (name: string) =>
    run(
      `patch px ${name} --subresource=status --type=merge -p ${JSON.stringify({
        status: {
          phase: "Ready",
          conditions: [
            { type: "Ready", status: "True", reason: "Ready", message: "", lastTransitionTime: "2026-01-01T00:00:00Z" },
          ],
        },
      })}`,
    );

  test("can be fetched and says its version", { timeout: firstFetchMs }, async () => {
    expect((await run("version --client")).output).toContain(`v${version}.`);
  });

  test("applies a Proxy, shows it with its columns, and finds nothing to change the second time", async () => {
    expect(await apply("first")).toEqual({ code: 0, output: "proxy.crawl.example.com/first created\n" });
    expect(await apply("first")).toEqual({ code: 0, output: "proxy.crawl.example.com/first unchanged\n" });
    expect((await apply("first", { provider: "lab", maxLeases: 2 })).output).toContain("configured");
    const { output } = await run("get px -o wide");
    expect(output).toMatch(/^NAME +PROVIDER +PHASE +READY +IP +PORT +MAX-LEASES +REASON +AGE\n/);
    expect(output).toMatch(/first +lab +3128 +2 +\d+s\n/);
    const file = path.join(api.dir, "first.json");
    await writeFile(file, manifest("first", { provider: "lab", maxLeases: 2 }));
    expect(await run(`diff -f ${file}`)).toEqual({ code: 0, output: "" });
  });

  test("is refused what the definition forbids, with the name of the field", async () => {
    const port = await apply("wrong", { provider: "lab", port: 70_000 });
    expect(port.code).not.toBe(0);
    expect(port.output).toContain(
      'The Proxy "wrong" is invalid: spec.port: Invalid value: 70000: spec.port in body should be less than or equal to 65535',
    );
    expect((await apply("wrong", { provider: "lab", prot: 1 })).output).toContain('unknown field "spec.prot"');
    await apply("stays");
    const moved = await apply("stays", { provider: "other" });
    expect(moved.output).toContain(
      'The Proxy "stays" is invalid: spec.provider: Invalid value: "other": provider is immutable',
    );
  });

  test("applies on the server where that is a real one, and is told that the small one does not", async () => {
    const onServer = (name: string, spec: object, flags = "") =>
      run(`apply --server-side ${flags} -f -`.replace(/ +/g, " "), { input: manifest(name, spec) });
    const first = await onServer("merged", { provider: "lab", maxLeases: 3 });
    if (!api.isReal) return expect(first.output).toContain("no server-side apply");
    expect(first.output).toContain("merged serverside-applied");
    // What was not said has its default.
    expect((await run("get px merged -o jsonpath={.spec.maxLeases}/{.spec.port}")).output).toBe("3/3128");
    // A field that somebody else has set is theirs, until it is taken by force.
    const other = await onServer("merged", { provider: "lab", maxLeases: 4 }, "--field-manager=somebody");
    expect(other.output).toMatch(/conflict with "kubectl"[^]*\.spec\.maxLeases/);
    await onServer("merged", { provider: "lab", maxLeases: 4 }, "--field-manager=somebody --force-conflicts");
    // What is no longer said by whom it belongs to goes back to its default.
    await onServer("merged", { provider: "lab" }, "--field-manager=somebody");
    expect((await run("get px merged -o jsonpath={.spec.maxLeases}")).output).toBe("1");
    const moved = await onServer("merged", { provider: "other" }, "--force-conflicts");
    expect(moved.output).toContain('spec.provider: Invalid value: "other": provider is immutable');
    const unknown = await onServer("pruned", { provider: "lab", prot: 1 });
    expect(unknown.output).toContain(".spec.prot: field not declared in schema");
  });

  test("has an unknown field removed where it is told not to validate", async () => {
    const { output } = await run("apply --validate=ignore -f -", {
      input: manifest("pruned", { provider: "lab", prot: 1 }),
    });
    expect(output).toContain("pruned created");
    const { output: spec } = await run("get px pruned -o jsonpath={.spec}");
    expect(spec).toContain('"provider":"lab"');
    expect(spec).not.toContain("prot");
  });

  test("explains the fields of a Proxy", async () => {
    const { output } = await run("explain proxies --recursive");
    expect(output).toContain("A forward proxy that runs on a provider");
    expect(output).toMatch(/healthCheck\t<Object>[^]*unhealthyThreshold\t<integer>/);
    expect((await run("explain proxies.spec.port")).output).toContain("Port that the proxy listens on.");
  });

  test("edits, labels and patches", async () => {
    await apply("edited");
    const edit = await run("edit px edited", {
      env: { KUBE_EDITOR: "sed -i 's/maxLeases: 1/maxLeases: 7/'" },
    });
    expect(edit.output).toContain("proxy.crawl.example.com/edited edited");
    expect((await run("label px edited team=crawl")).output).toContain("labeled");
    const patch = JSON.stringify([{ op: "replace", path: "/spec/port", value: 8080 }]);
    expect((await run(`patch px edited --type=json -p ${patch}`)).output).toContain("patched");
    const { output } = await run(
      "get px edited -o jsonpath={.spec.maxLeases}/{.spec.port}/{.metadata.labels.team}/{.metadata.generation}",
    );
    expect(output).toBe("7/8080/crawl/3");
    expect((await run("get px -l team=crawl -o name")).output).toBe("proxy.crawl.example.com/edited\n");
  });

  test("follows changes with get -w", async () => {
    await apply("followed");
    const following = spawn(await binary, ["get", "px", "followed", "-w"], { env });
    let output = "";
    following.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    const ended = new Promise((resolve) => following.once("exit", resolve));
    try {
      await expect.poll(() => output).toContain("followed");
      await ready("followed");
      await expect.poll(() => output).toMatch(/followed +lab +Ready +True +3128 +Ready/);
      await run("delete px followed");
      await expect.poll(() => output.split("\n").length).toBe(5); // a heading, three rows, the last line's end
    } finally {
      following.kill();
      await ended;
    }
  });

  test("waits for a condition and for the end", async () => {
    await apply("awaited");
    const forReady = run("wait px/awaited --for=condition=Ready --timeout=20s");
    await ready("awaited");
    expect(await forReady).toEqual({ code: 0, output: "proxy.crawl.example.com/awaited condition met\n" });
    const finalizer = (list: string[] | null) =>
      run(`patch px awaited --type=merge -p ${JSON.stringify({ metadata: { finalizers: list } })}`);
    await finalizer(["crawl.example.com/instance"]);
    const deletion = run("delete px awaited");
    const forEnd = run("wait px/awaited --for=delete --timeout=20s");
    await expect
      .poll(async () => (await run("get px awaited -o jsonpath={.metadata.deletionTimestamp}")).output)
      .toMatch(/^\d/);
    await finalizer(null);
    expect((await deletion).output).toContain('proxy.crawl.example.com "awaited" deleted');
    expect((await forEnd).code).toBe(0);
    expect((await run("get px awaited")).output).toContain('proxies.crawl.example.com "awaited" not found');
  });

  test("creates a namespace, a Secret and a ConfigMap, and deletes all of it with the namespace", async () => {
    const space = `${api.namespace}-made`;
    expect((await run(`create ns ${space}`)).output).toBe(`namespace/${space} created\n`);
    expect((await run(`create secret generic login -n ${space} --from-literal=user=me`)).output).toBe(
      "secret/login created\n",
    );
    expect((await run(`create cm settings -n ${space} --from-literal=a=b`)).output).toBe(
      "configmap/settings created\n",
    );
    expect((await run(`get secret login -n ${space} -o jsonpath={.type}/{.data.user}`)).output).toBe("Opaque/bWU=");
    expect((await run(`get cm settings -n ${space} -o jsonpath={.data.a}`)).output).toBe("b");
    expect((await run(`delete ns ${space} --wait=false`)).output).toContain(`namespace "${space}" deleted`);
    if (api.isReal) return; // emptying it is the controller manager's, which is not there
    expect((await run(`wait ns/${space} --for=delete --timeout=20s`)).code).toBe(0);
    expect((await run("get secret,cm -A -o name")).output).toBe("");
  });

  test("describes a Proxy with its events, and lists them", async () => {
    await apply("described");
    const uid = (await run("get px described -o jsonpath={.metadata.uid}")).output;
    const time = new Date().toISOString().replace(/\.\d+/, "");
    const involvedObject = {
      apiVersion: "crawl.example.com/v1alpha1",
      kind: "Proxy",
      namespace: api.namespace,
      name: "described",
      uid,
    };
    const event = { type: "Normal", reason: "InstanceReady", message: "The proxy can be leased.", count: 1 };
    await api.call("POST", `/api/v1/namespaces/${api.namespace}/events`, {
      body: {
        metadata: { name: "described.1" },
        involvedObject,
        ...event,
        firstTimestamp: time,
        lastTimestamp: time,
        source: { component: "test" },
      },
    });
    const { output } = await run("describe px described");
    expect(output).toMatch(/Spec:[^]*Provider: +lab/);
    expect(output).toMatch(/Events:[^]*Normal +InstanceReady +\d+s +test +The proxy can be leased\./);
    expect((await run("get events")).output).toMatch(
      /Normal +InstanceReady +(proxy\/)?described +The proxy can be leased\./,
    );
    expect((await run("events --for=proxy/described")).output).toContain("InstanceReady");
  });

  test("applies a definition of somebody else, waits for it, and uses it", async () => {
    const group = `${api.namespace}.example.com`; // definitions are of the whole cluster
    const schema = { openAPIV3Schema: { type: "object", properties: { size: { type: "integer" } } } };
    const definition = {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: `widgets.${group}` },
      spec: {
        group,
        scope: "Namespaced",
        names: { kind: "Widget", plural: "widgets", singular: "widget" },
        versions: [{ name: "v1", served: true, storage: true, schema }],
      },
    };
    const input = JSON.stringify(definition);
    expect((await run("apply -f -", { input })).output).toContain("created");
    expect((await run("apply -f -", { input })).output).toContain("unchanged");
    expect((await run(`wait crd/widgets.${group} --for=condition=Established --timeout=20s`)).code).toBe(0);
    const widget = { apiVersion: `${group}/v1`, kind: "Widget", metadata: { name: "w" }, size: 3 };
    // A real one serves it a moment after it says so.
    await expect
      .poll(async () => (await run("apply -f -", { input: JSON.stringify(widget) })).output, { timeout: 20_000 })
      .toBe(`widget.${group}/w created\n`);
    expect((await run(`get widgets.${group}`)).output).toMatch(/NAME +AGE\nw +\d+s/);
    expect((await run(`delete crd widgets.${group}`)).code).toBe(0);
    expect((await run("api-resources -o name")).output).not.toContain(group);
  });
});
