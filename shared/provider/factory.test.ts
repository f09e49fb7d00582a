import { expect, test } from "vitest";
import { parseProviders } from "./config.ts";
import type { ProviderCall } from "./decorators/metrics.ts";
import { createProvider } from "./factory.ts";

test("a configured provider is made without dialling, and its calls have a deadline and are counted", async () => {
  const [entry] = parseProviders("providers: [{name: lab, type: kubernetes}]");
  if (entry === undefined) throw new Error("no entry");
  const observed: ProviderCall[] = [];
  let dialled = 0;
  const provider = createProvider(entry, {
    installation: "i",
    namespaces: ["crawl"],
    connection: {
      api: () => {
        dialled += 1;
        throw new Error("no cluster");
      },
    },
    observe: (call) => void observed.push(call),
    onUnreadable: () => undefined,
    onInsecure: () => undefined,
  });
  expect(provider).toMatchObject({ name: "lab", type: "kubernetes" });
  expect(dialled).toBe(0);
  await expect(provider.get("crawl/x", { signal: AbortSignal.timeout(5000) })).rejects.toThrow("no cluster");
  await expect(provider.get("crawl/x", { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "Aborted" });
  expect(dialled).toBe(1);
  expect(observed).toEqual([
    { provider: "lab", op: "get", result: "Transient" },
    { provider: "lab", op: "get", result: "Transient" },
  ]);
});

test("an insecure setting is told when a provider is made with it", () => {
  const told: string[] = [];
  const deps = {
    installation: "i",
    namespaces: ["crawl"],
    connection: {
      api: () => {
        throw new Error("no cluster");
      },
    },
    observe: () => undefined,
    onUnreadable: () => undefined,
    onInsecure: (provider: string, setting: string) => void told.push(`${provider} ${setting}`),
  };
  for (const entry of parseProviders(
    "providers: [{name: open, type: kubernetes, kubernetes: {insecureNoAuth: true}}, {name: lab, type: kubernetes}]",
  ))
    createProvider(entry, deps);
  expect(told).toEqual(["open insecureNoAuth"]);
});
