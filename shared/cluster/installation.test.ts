import { createHash } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { base32 } from "#shared/model/base32.ts";
import { TestApi } from "#test/kubernetes-api.ts";
import { ClusterConnection } from "./connection.ts";
import { loadInstallation } from "./installation.ts";

let api: TestApi;
let connection: ClusterConnection;

beforeEach(async () => {
  api = await TestApi.start();
  connection = ClusterConnection.load({ kubeconfigFile: api.kubeconfigFile, userAgent: "tester" });
});

afterEach(async () => {
  await connection.close();
  await api.stop();
});

const load = (releaseName: string, installationID?: string) =>
  loadInstallation(
    { connection, namespace: api.namespace, releaseName, ...(installationID === undefined ? {} : { installationID }) },
    { signal: new AbortController().signal },
  );
const configMap = () => `/api/v1/namespaces/${api.namespace}/configmaps/egress-proxies-installation`;
const secret = () => `/api/v1/namespaces/${api.namespace}/secrets/egress-proxies-installation`;

test("The id comes from cluster, namespace and release, and is recorded where an uninstall keeps it", async () => {
  const { body: cluster } = await api.call("GET", "/api/v1/namespaces/kube-system");
  const digest = createHash("sha256")
    .update(`${String(cluster.metadata.uid)}/${api.namespace}/crawl`)
    .digest();
  const { id, hashKey } = await load("crawl");
  expect(id).toBe(base32(digest).slice(0, 10));
  expect(id).toMatch(/^[a-z2-7]{10}$/);
  expect(hashKey).toHaveLength(32);
  const { body } = await api.call("GET", configMap());
  expect(body).toMatchObject({
    metadata: { annotations: { "helm.sh/resource-policy": "keep" } },
    data: { installationID: id },
  });
});

test("What is recorded wins over what would be derived, and the key stays the same", async () => {
  const first = await load("crawl");
  expect(await load("renamed")).toEqual(first);
});

test("Processes that start at the same time agree on one id and one key", async () => {
  const all = await Promise.all(Array.from({ length: 8 }, (_, index) => load(`release-${index}`)));
  expect(new Set(all.map(({ id }) => id)).size).toBe(1);
  expect(new Set(all.map(({ hashKey }) => Buffer.from(hashKey).toString("hex"))).size).toBe(1);
});

test("A setting is recorded; one that contradicts the record is refused, naming both", async () => {
  expect((await load("crawl", "chosen")).id).toBe("chosen");
  expect((await load("crawl", "chosen")).id).toBe("chosen");
  expect((await load("crawl")).id).toBe("chosen");
  const refused = { class: "Permanent", code: "InstallationChanged" };
  await expect(load("crawl", "another")).rejects.toMatchObject(refused);
  await expect(load("crawl", "another")).rejects.toThrow(/another.*chosen/s);
});

test("A ConfigMap that is there for another reason keeps what it holds", async () => {
  const metadata = { name: "egress-proxies-installation", annotations: { note: "x" } };
  const body = { kind: "ConfigMap", apiVersion: "v1", metadata, data: { other: "y" } };
  await api.call("POST", `/api/v1/namespaces/${api.namespace}/configmaps`, { body });
  const { id } = await load("crawl");
  const { body: found } = await api.call("GET", configMap());
  expect(found).toMatchObject({ metadata: { annotations: { note: "x" } }, data: { other: "y", installationID: id } });
});

test("A Secret whose key is missing or cut short is refused with the remedy", async () => {
  const metadata = { name: "egress-proxies-installation" };
  const data = { specHashKey: Buffer.from("short").toString("base64") };
  await api.call("POST", `/api/v1/namespaces/${api.namespace}/secrets`, {
    body: { kind: "Secret", apiVersion: "v1", metadata, data },
  });
  await expect(load("crawl")).rejects.toMatchObject({ class: "Permanent", code: "NoSpecHashKey" });
  await api.call("PUT", secret(), { body: { kind: "Secret", apiVersion: "v1", metadata } });
  await expect(load("crawl")).rejects.toMatchObject({ class: "Permanent", code: "NoSpecHashKey" });
});
