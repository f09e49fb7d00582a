import { ApiException } from "@kubernetes/client-node";
import { afterAll, expect, test, vi } from "vitest";
import { classifyApiError } from "#shared/cluster/failure.ts";
import { ApiClient } from "#test/api-client.ts";
import { TestApi } from "#test/kubernetes-api.ts";
import { findBinaries } from "./binaries.ts";
import { startControlPlane } from "./control-plane.ts";

/** Refusals that the small API does not know. */
const api = await TestApi.start();
afterAll(() => api.stop());

const within = (namespace: string, plural: string): string => `/api/v1/namespaces/${namespace}/${plural}`;
const mergePatch = "application/merge-patch+json";

function verdict({ status, text, headers }: Awaited<ReturnType<ApiClient["call"]>>) {
  const wait = headers["retry-after"];
  const sent: Record<string, string> = typeof wait === "string" ? { "retry-after": wait } : {};
  const failure = classifyApiError(new ApiException(status, "", text, sent), "POST /x", "write");
  const { class: failureClass, code, retryAfterMs, ambiguous } = failure;
  return { status, class: failureClass, code, retryAfterMs, ambiguous };
}

test("A quota is QuotaExceeded", async () => {
  const hard = { "count/configmaps": "0" };
  const quota = { metadata: { name: "none" }, spec: { hard } };
  expect((await api.call("POST", within(api.namespace, "resourcequotas"), { body: quota })).status).toBe(201);
  // What the controller manager would do.
  const body = { status: { hard, used: { "count/configmaps": "0" } } };
  await api.call("PATCH", `${within(api.namespace, "resourcequotas")}/none/status`, { body, type: mergePatch });
  const create = () => api.call("POST", within(api.namespace, "configmaps"), { body: { metadata: { name: "one" } } });
  await expect
    .poll(async () => verdict(await create()), { timeout: 10_000 })
    .toMatchObject({ status: 403, class: "QuotaExceeded", code: "QuotaExceeded" });
});

test("A namespace that is going away is Transient NamespaceTerminating", async () => {
  const doomed = `${api.namespace}-doomed`;
  await api.addNamespace(doomed);
  await api.call("DELETE", `/api/v1/namespaces/${doomed}`);
  const late = await api.call("POST", within(doomed, "configmaps"), { body: { metadata: { name: "late" } } });
  expect(verdict(late)).toMatchObject({ status: 403, class: "Transient", code: "NamespaceTerminating" });
});

test("What RBAC does not grant is Permanent Forbidden, and what it grants is done", async () => {
  await api.call("POST", within(api.namespace, "serviceaccounts"), { body: { metadata: { name: "reader" } } });
  const role = "/apis/rbac.authorization.k8s.io/v1";
  const rules = [{ apiGroups: ["crawl.example.com"], resources: ["proxies"], verbs: ["get", "list"] }];
  await api.call("POST", `${role}/namespaces/${api.namespace}/roles`, { body: { metadata: { name: "read" }, rules } });
  const subjects = [{ kind: "ServiceAccount", name: "reader", namespace: api.namespace }];
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "read" };
  const binding = { metadata: { name: "read" }, subjects, roleRef };
  await api.call("POST", `${role}/namespaces/${api.namespace}/rolebindings`, { body: binding });
  const reader = new ApiClient({ ...api.access, token: await api.tokenFor("reader") });
  try {
    const [inside, everywhere] = [`/namespaces/${api.namespace}/proxies`, "/proxies"];
    const list = (where: string) => reader.call("GET", `/apis/crawl.example.com/v1alpha1${where}`);
    await expect.poll(async () => (await list(inside)).status, { timeout: 10_000 }).toBe(200);
    expect(verdict(await list(everywhere))).toMatchObject({ status: 403, class: "Permanent", code: "Forbidden" });
  } finally {
    await reader.close();
  }
});

test("A version that is not there yet is a Transient Timeout, with the time to wait", async () => {
  const answer = await api.call("GET", `${within(api.namespace, "configmaps")}?resourceVersion=999999999`);
  expect(verdict(answer)).toMatchObject({ status: 504, class: "Transient", code: "Timeout", retryAfterMs: 1000 });
});

test("Overload is Transient TooManyRequests in plain text, with the time to wait in the header", async () => {
  const binaries = findBinaries();
  if (binaries === undefined) throw new Error("there is no kube-apiserver");
  const apiServerArgs = ["--enable-priority-and-fairness=false", "--max-requests-inflight=1"];
  const plane = await startControlPlane({ binaries, apiServerArgs });
  // Nobody refuses a member of system:masters: an anonymous one it is.
  const guest = new ApiClient({ ...plane, token: "" });
  try {
    const ask = () => guest.call("GET", "/version", { headers: { authorization: "" } });
    const refused = async () => {
      const answers = await Promise.all(Array.from({ length: 100 }, ask));
      const found = answers.find(({ status }) => status === 429);
      if (found === undefined) throw new Error("all are answered");
      return found;
    };
    const answer = await vi.waitFor(refused, { timeout: 10_000 });
    expect(answer.text).toBe("Too many requests, please try again later.\n");
    expect(verdict(answer)).toEqual({
      status: 429,
      class: "Transient",
      code: "TooManyRequests",
      retryAfterMs: 1000,
      ambiguous: false,
    });
  } finally {
    await guest.close();
    await plane.stop();
  }
});
