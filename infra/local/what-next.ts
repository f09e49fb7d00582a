import path from "node:path";
import { group } from "#shared/model/names.ts";
import type { LocalFiles } from "./files.ts";
import type { Place } from "./place.ts";
import type { Stack } from "./stack.ts";

/** Commands for another terminal, while everything runs. */
export function whatNext({ place, leaseApi, echoUrl }: Stack, files: LocalFiles): string {
  const token = `$(cat ${path.join(files.dir, "lease.token")})`;
  const proxies = place.samplesNamespace === "default" ? "proxies" : `-n ${place.samplesNamespace} proxies`;
  return `
What to try next, in another terminal:

  export KUBECONFIG=${place.kubeconfigFile}
  kubectl get ${proxies}
  kubectl explain proxies.spec
  curl -s -H "Authorization: Bearer ${token}" -H "Content-Type: application/json" \\
    -d '{"ttlSeconds": 60}' ${leaseApi.url}/v1/leases
  curl -s -H "Authorization: Bearer ${token}" ${leaseApi.url}/v1/proxies
  curl --cacert ${files.authority} --proxy <the lease's proxy.url> ${echoUrl}

Ctrl-C stops everything.`;
}

/** What is left in somebody's cluster after the end, and how it goes. */
export function howToDelete({ kubeconfigFile, productNamespace, samplesNamespace }: Place): string {
  const kubectl = `kubectl --kubeconfig ${kubeconfigFile}`;
  return `
In the cluster stay: Proxies with their Pods and Secrets in namespace ${samplesNamespace}, namespace ${productNamespace}, and the
definition of Proxy. To delete them, begin while this runs (start it again): nothing else ends what a Proxy has.

  ${kubectl} -n ${samplesNamespace} delete proxies --all

Then stop it, and:

  ${kubectl} delete namespace ${samplesNamespace} ${productNamespace}
  ${kubectl} delete crd proxies.${group}   # if nobody else has Proxies there: they go with it`;
}
