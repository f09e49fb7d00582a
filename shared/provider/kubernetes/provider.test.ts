import type { V1Pod, V1Secret } from "@kubernetes/client-node";
import { expect, test } from "vitest";
import { Failure } from "#shared/errors/failure.ts";
import type { CreateRequest } from "../contract.ts";
import type { Objects } from "./objects.ts";
import { KubernetesProvider } from "./provider.ts";
import { kubernetesSettings } from "./settings.ts";

const call = { signal: new AbortController().signal };
const request: CreateRequest = {
  name: "proxy-a",
  namespace: "crawl",
  proxyName: "p",
  uid: "u",
  incarnation: 1,
  installation: "i",
  placement: {},
  zone: "",
  port: 3128,
};

/** A cluster that holds nothing and lists what it is told to. */
function emptyCluster<T>(made: string[], kind: string, list: Objects<T>["list"] = async () => []): Objects<T> {
  const gone = (): never => {
    throw new Failure({ class: "NotFound", code: "NotFound", message: "gone" });
  };
  return { create: async () => void made.push(kind), read: async () => gone(), delete: async () => gone(), list };
}

function provider(settings: object, list?: Objects<V1Pod>["list"], namespaces: string[] | "*" = ["one", "two"]) {
  const made: string[] = [];
  const unreadable: string[] = [];
  const kubernetes = new KubernetesProvider({
    name: "lab",
    settings: kubernetesSettings.parse(settings),
    cluster: { pods: emptyCluster<V1Pod>(made, "Pod", list), secrets: emptyCluster<V1Secret>(made, "Secret") },
    scope: { installation: "i", namespaces, onUnreadable: (namespace) => void unreadable.push(namespace) },
  });
  return { kubernetes, made, unreadable };
}

test("a proxy without credentials is refused with the remedy, and nothing is made", async () => {
  const { kubernetes, made } = provider({});
  await expect(kubernetes.create(request, call)).rejects.toMatchObject({
    class: "Permanent",
    code: "AuthRequired",
    message: expect.stringMatching(/spec\.auth\.secretRef.*insecureNoAuth/),
  });
  expect(made).toEqual([]);
});

test("what can never work is refused before anything is begun, naming the field and the remedy", () => {
  const { kubernetes } = provider({});
  const possible = { placement: {}, port: 1024, hasAuth: true };
  expect(kubernetes.place(possible)).toBe("");
  for (const [impossible, code, message] of [
    [{ hasAuth: false }, "AuthRequired", /spec\.auth\.secretRef/],
    [{ port: 1023 }, "PortNotAllowed", /spec\.port: 1023 .*1024 or above/],
  ] as const) {
    const refusal = expect.objectContaining({ class: "Permanent", code, message: expect.stringMatching(message) });
    expect(() => kubernetes.place({ ...possible, ...impossible })).toThrow(refusal);
  }
});

test("with insecureNoAuth it is made, the Secret before the Pod", async () => {
  const { kubernetes, made } = provider({ insecureNoAuth: true });
  expect(await kubernetes.create(request, call)).toEqual({ providerID: "crawl/proxy-a" });
  expect(made).toEqual(["Secret", "Pod"]);
});

test("one namespace that cannot be read makes the listing incomplete and is named", async () => {
  const { kubernetes, unreadable } = provider({}, async (namespace) => {
    if (namespace === "two") throw new Error("forbidden");
    return [{ metadata: { name: "x", namespace: "one" } }];
  });
  expect(await kubernetes.list(call)).toMatchObject({ complete: false, instances: [{ name: "x" }] });
  expect(unreadable).toEqual(["two"]);
});

test("where nothing can be read, list fails", async () => {
  const { kubernetes } = provider({}, () => Promise.reject(new Error("down")));
  await expect(kubernetes.list(call)).rejects.toMatchObject({ class: "Transient", op: "list", provider: "lab" });
});

test("all namespaces are read with one list", async () => {
  const asked: unknown[] = [];
  const { kubernetes } = provider({}, async (...given) => (asked.push(given.slice(0, 2)), []), "*");
  expect(await kubernetes.list(call)).toEqual({ instances: [], resources: [], complete: true });
  expect(asked).toEqual([[undefined, "egress-proxies-managed=true,egress-proxies-installation=i"]]);
});
