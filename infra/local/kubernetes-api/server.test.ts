import { readFile, stat, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { afterAll, expect, test } from "vitest";
import { SmallApi } from "#test/small-api.ts";
import { issueCertificate, makeAuthority } from "../certificates.ts";

const errors: unknown[] = [];
const api = await SmallApi.start({ onError: (error) => errors.push(error) });
afterAll(() => api.stop());

const configMaps = "/api/v1/namespaces/default/configmaps";
const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;

test("a request without the token is refused, except for health and version", async () => {
  for (const authorization of ["", "Bearer wrong", "Basic abc"])
    expect(await api.call("GET", "/api", { headers: { authorization } })).toMatchObject({
      status: 401,
      body: { reason: "Unauthorized" },
    });
  for (const path of ["/healthz", "/readyz", "/livez", "/version"])
    expect((await api.call("GET", path, { headers: { authorization: "" } })).status).toBe(200);
});

test.each([
  ["POST", configMaps, { body: "{" }, 400],
  ["POST", configMaps, { body: "[]" }, 400],
  ["POST", configMaps, { body: { metadata: { name: 5 } } }, 400],
  ["POST", configMaps, { body: { metadata: "x" } }, 400],
  ["POST", configMaps, {}, 400],
  ["POST", configMaps, { body: "a: b", type: "application/yaml" }, 415],
  ["POST", configMaps, { body: Buffer.from([1, 2, 255, 255, 255]), type: "application/vnd.kubernetes.protobuf" }, 400],
  ["POST", configMaps, { body: `{"data": "${"x".repeat(4 * 1024 * 1024)}"}` }, 413],
  ["DELETE", `${configMaps}/none`, { body: { gracePeriodSeconds: "soon" } }, 404],
  ["POST", configMaps, { body: `{"metadata": {"name": "deep"}, "x": ${deep}}` }, 400],
  ["PATCH", "/api/v1/namespaces/default", { body: `{"x": ${deep}}`, type: "application/merge-patch+json" }, 400],
  ["PUT", "/api/v1/namespaces/default", { body: `{"x": ${deep}}` }, 400],
  ["GET", `${configMaps}?limit=many`, {}, 400],
  ["GET", `${configMaps}?continue=!!!!`, {}, 400],
  ["GET", "/%ff", {}, 400],
  ["POST", `${configMaps}/name`, { body: {} }, 404],
  ["PUT", configMaps, { body: {} }, 405],
] as const)("%s %s, wrong in itself or in its body, gets a Status", async (method, target, call, code) => {
  const { status, body } = await api.call(method, target, call);
  expect(status).toBe(code);
  expect(body).toMatchObject({ kind: "Status", status: "Failure", code });
});

test.each([
  "/",
  "//",
  "//nothing",
  "/nothing",
  "/api/v1/nothing",
  "/api/v1/namespaces/default/configmaps/a/b/c",
  "/apis/crawl.example.com/v9/proxies",
])("%s is not served, which is no Status", async (target) => {
  expect(await api.call("GET", target)).toMatchObject({ status: 404, text: "404 page not found\n" });
});

test("server-side apply is refused", async () => {
  const apply = { body: "{}", type: "application/apply-patch+yaml" };
  expect((await api.call("PATCH", `${configMaps}/new?fieldManager=x`, apply)).status).toBe(415);
  await api.call("POST", configMaps, { body: { metadata: { name: "applied" } } });
  expect((await api.call("PATCH", `${configMaps}/applied?fieldManager=x`, apply)).status).toBe(415);
});

test("a strategic patch removes a container by name", async () => {
  const pods = "/api/v1/namespaces/default/pods";
  const containers = ["a", "b"].map((name) => ({ name, image: "1" }));
  await api.call("POST", pods, { body: { metadata: { name: "pair" }, spec: { containers } } });
  const { body } = await api.call("PATCH", `${pods}/pair`, {
    body: { spec: { containers: [{ name: "a", $patch: "delete" }] } },
    type: "application/strategic-merge-patch+json",
  });
  expect(body).toMatchObject({ spec: { containers: [{ name: "b", image: "1" }] } });
});

test.each([
  ["secrets", "", "secrets", "spec.group: should be a domain with at least one dot"],
  ["widgets.dotless", "dotless", "widgets", "spec.group: should be a domain with at least one dot"],
  ["leases.coordination.k8s.io", "coordination.k8s.io", "leases", "leases.coordination.k8s.io is built in"],
  ["leases.coordination.k8s.io", "k8s.io", "leases.coordination", "spec.names.plural: must be a lowercase DNS label"],
  ["other.example.com", "example.com", "widgets", "metadata.name: must be spec.names.plural"],
])(
  "a definition %s with group %j and plural %s is refused, and deletes nobody's objects",
  async (name, group, plural, why) => {
    const schema = { openAPIV3Schema: { type: "object" } };
    const versions = [{ name: "v1", served: true, storage: true, schema }];
    const spec = { group, scope: "Namespaced", names: { kind: "Shadow", plural }, versions };
    const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const answer = await api.call("POST", definitions, { body: { metadata: { name }, spec } });
    expect(answer).toMatchObject({ status: 422, body: { reason: "Invalid", message: expect.stringContaining(why) } });
    expect((await api.call("GET", `${definitions}/${name}`)).status).toBe(404);
  },
);

test("a watch shows how old an object is when it changes, not when the watch began", async () => {
  let now = Date.parse("2026-01-01T00:00:00Z");
  const other = await SmallApi.start({ now: () => now });
  const target = "/api/v1/namespaces/default/configmaps";
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
  const ages: unknown[] = [];
  const watching = (async () => {
    for await (const { object } of other.watch(`${target}?watch=true&resourceVersion=1`, { accept })) ages.push(object);
  })().catch(() => "cut off");
  await other.call("POST", target, { body: { metadata: { name: "old" } } });
  now += 5_000;
  const change = { body: { data: { a: "1" } }, type: "application/merge-patch+json" };
  await other.call("PATCH", `${target}/old`, change);
  await expect
    .poll(() => ages)
    .toMatchObject([{ rows: [{ cells: ["old", "0s"] }] }, { rows: [{ cells: ["old", "5s"] }] }]);
  await other.stop();
  await watching;
});

test("bytes that are no request end their connection only", async () => {
  const socket = connect(api.port, "127.0.0.1");
  socket.write("\0\0 garbage \r\n\r\n");
  await new Promise((resolve) => socket.on("close", resolve).on("error", resolve).resume());
  expect((await api.call("GET", "/healthz")).status).toBe(200);
  expect(errors).toEqual([]);
});

test("objects and identities outlive a restart, and no version is given out twice", async () => {
  const before = await api.call("POST", configMaps, { body: { metadata: { name: "lasting" }, data: { a: "1" } } });
  const system = await api.call("GET", "/api/v1/namespaces/kube-system");
  await api.restart();
  const after = await api.call("GET", `${configMaps}/lasting`);
  expect(after.body).toEqual(before.body);
  expect((await api.call("GET", "/api/v1/namespaces/kube-system")).body).toEqual(system.body);
  const next = await api.call("POST", configMaps, { body: { metadata: { name: "next" } } });
  expect(Number(next.body.metadata["resourceVersion"])).toBeGreaterThan(
    Number(before.body.metadata["resourceVersion"]) + 1000,
  );
});

test("the state is in the file soon after a change, for its owner only", async () => {
  await api.call("POST", configMaps, { body: { metadata: { name: "saved" } } });
  await expect.poll(() => readFile(api.dataFile, "utf8")).toContain('"saved"');
  expect((await stat(api.dataFile)).mode & 0o777).toBe(0o600);
});

test("a deletion that a kill interrupted goes on after the next start", async () => {
  await api.call("POST", "/api/v1/namespaces", { body: { metadata: { name: "halfway" } } });
  await api.call("POST", "/api/v1/namespaces/halfway/configmaps", { body: { metadata: { name: "left" } } });
  await api.call("DELETE", "/api/v1/namespaces/halfway");
  await api.restart();
  await expect.poll(async () => (await api.call("GET", "/api/v1/namespaces/halfway")).status).toBe(404);
});

test("a broken data file and a used port are named, with the remedy", async () => {
  const other = await SmallApi.start();
  await expect(SmallApi.start({ port: other.port })).rejects.toThrow(`Port ${other.port} of 127.0.0.1 is in use`);
  await other.stop();
  const broken = `${api.dir}/broken.json`;
  await writeFile(broken, '{"version": 1, "objects": [[');
  await expect(SmallApi.start({ dataFile: broken })).rejects.toThrow(`${broken} does not hold the state`);
  expect(await readFile(broken, "utf8")).toContain("[[");
});

test("a certificate that is given is served, and its authority is in the kubeconfig", async () => {
  const authority = await makeAuthority();
  const issued = await issueCertificate(authority, { commonName: "mine", altNames: [{ ip: "127.0.0.1" }] });
  const other = await SmallApi.start({ tls: { ...issued, authority: authority.certificate } });
  expect(await readFile(other.kubeconfigFile, "utf8")).toContain(Buffer.from(authority.certificate).toString("base64"));
  expect((await other.call("GET", "/healthz")).status).toBe(200);
  await other.stop();
});
