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

/** What is left in somebody's cluster after the end, and how it goes. Names nothing that was there before us. */
export function howToDelete({ kubeconfigFile, samplesNamespace, made }: Place): string {
  const kubectl = `kubectl --kubeconfig ${kubeconfigFile}`;
  const { namespaces, definition } = made ?? { namespaces: [], definition: false };
  const rest = [
    ...(namespaces.includes(samplesNamespace) ? [] : [`-n ${samplesNamespace} delete secret proxy-credentials`]),
    ...(namespaces.length === 0 ? [] : [`delete namespace ${namespaces.join(" ")}`]),
    ...(definition ? [`delete crd proxies.${group}   # if nobody else has Proxies there: they go with it`] : []),
  ];
  return `
Proxies, with their Pods and Secrets, stay in the cluster. To delete them, begin while this runs (start it again): nothing
else ends what a Proxy has.

  ${kubectl} -n ${samplesNamespace} delete proxies --all

Then stop it, and delete what else was made:

${rest.map((line) => `  ${kubectl} ${line}`).join("\n")}`;
}
