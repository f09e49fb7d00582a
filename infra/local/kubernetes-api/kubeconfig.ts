import { stringify } from "yaml";

/** A kubeconfig (YAML) with one context. `authority` is the PEM certificate that signed the server's. */
export function makeKubeconfig(init: { url: string; authority: string; token: string }): string {
  const name = "egress-proxies-local";
  const cluster = { server: init.url, "certificate-authority-data": Buffer.from(init.authority).toString("base64") };
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster }],
    users: [{ name, user: { token: init.token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: "default" } }],
    "current-context": name,
  });
}
