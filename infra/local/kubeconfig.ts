import { stringify } from "yaml";

/** A kubeconfig (YAML) with one context. `authority` is the PEM certificate that signed the server's. */
export function makeKubeconfig(access: { url: string; token: string; authority: string }): string {
  const name = "egress-proxies-local";
  const cluster = {
    server: access.url,
    "certificate-authority-data": Buffer.from(access.authority).toString("base64"),
  };
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster }],
    users: [{ name, user: { token: access.token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: "default" } }],
    "current-context": name,
  });
}
