import { stringify } from "yaml";

export interface Access {
  url: string;
  token: string;
  /** The certificate (PEM) that signed the server's. */
  authority: string;
  /** Where kubectl looks when it is told nothing else. */
  namespace?: string;
}

/** A kubeconfig (YAML) with one context. */
export function makeKubeconfig(access: Access): string {
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
    contexts: [{ name, context: { cluster: name, user: name, namespace: access.namespace ?? "default" } }],
    "current-context": name,
  });
}
