import { expect, test } from "vitest";
import type { CreateRequest } from "../contract.ts";
import { podManifest, secretManifest } from "./manifests.ts";
import { kubernetesSettings } from "./settings.ts";

const request: CreateRequest = {
  name: "proxy-abcdefghij234567",
  namespace: "crawl",
  proxyName: "p1",
  uid: "5b2c1f0e-8f0a-4a53-9c64-9f1d7c1f0001",
  incarnation: 3,
  installation: "abcde23456",
  placement: { zone: "ignored" },
  zone: "",
  port: 3128,
  cloudInit: Buffer.from("ignored"),
  auth: { username: "crawler", password: "hunter22" },
};
const defaults = kubernetesSettings.parse({});

test("the Pod of a proxy", () => {
  expect(podManifest(request, defaults)).toMatchSnapshot();
});

test("the settings of the provider reach the Pod", () => {
  const settings = kubernetesSettings.parse({
    image: "registry.test/squid:1",
    imagePullPolicy: "Never",
    imagePullSecrets: ["pull"],
    nodeSelector: { pool: "egress" },
    tolerations: [{ key: "egress", operator: "Exists" }],
    resources: { limits: { memory: "1Gi" } },
  });
  const { spec } = podManifest({ ...request, port: 80 }, settings);
  expect(spec).toMatchObject({
    imagePullSecrets: [{ name: "pull" }],
    nodeSelector: { pool: "egress" },
    tolerations: [{ key: "egress", operator: "Exists" }],
    securityContext: { sysctls: [{ name: "net.ipv4.ip_unprivileged_port_start", value: "0" }] },
    containers: [
      { image: "registry.test/squid:1", imagePullPolicy: "Never", resources: { limits: { memory: "1Gi" } } },
    ],
  });
});

test("the Secret holds config and password file, the same every time, with the marks of the Pod", () => {
  const secret = secretManifest(request, defaults);
  expect(secretManifest(request, defaults)).toEqual(secret);
  expect(secret.metadata).toEqual(podManifest(request, defaults).metadata);
  const text = (key: string): string => Buffer.from(secret.data?.[key] ?? "", "base64").toString();
  expect(text("squid.conf")).toContain("basic_ncsa_auth /etc/egress-proxy/htpasswd\n");
  expect(text("htpasswd")).toMatch(/^crawler:\$6\$/);
});

test("without credentials there is no password file and nobody is asked", () => {
  const secret = secretManifest({ ...request, auth: undefined }, defaults);
  expect(Object.keys(secret.data ?? {})).toEqual(["squid.conf"]);
  expect(Buffer.from(secret.data?.["squid.conf"] ?? "", "base64").toString()).not.toContain("auth_param");
});

test("nothing of the credentials or cloudInit is in the Pod", () => {
  const pod = JSON.stringify(podManifest(request, defaults));
  expect(pod).not.toMatch(/hunter22|crawler|ignored|\$6\$/);
});
