import { expect, test, vi } from "vitest";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import { type ProviderEntry, parseProviders } from "./config.ts";
import { ProviderSet } from "./providers.ts";

const call = { signal: new AbortController().signal };

function entries(...names: string[]): ProviderEntry[] {
  // `name:port` gives a provider with other settings.
  const lines = names.map((text) => {
    const [name, port = "443"] = text.split(":");
    return `{name: ${name}, type: kubernetes, kubernetes: {connectPorts: [${port}]}}`;
  });
  return parseProviders(`providers: [${lines.join(", ")}]`);
}

function makeSet() {
  const made: MemoryProvider[] = [];
  const closed: MemoryProvider[] = [];
  const closeErrors: unknown[] = [];
  const set = new ProviderSet({
    create: ({ name }) => {
      const provider = new MemoryProvider({ name });
      vi.spyOn(provider, "close").mockImplementation(async () => void closed.push(provider));
      made.push(provider);
      return provider;
    },
    onCloseError: (name, error) => void closeErrors.push([name, error]),
  });
  return { set, made, closed, closeErrors };
}

test("an unchanged entry keeps its instance, a changed one is built anew, a removed one is closed", async () => {
  const { set, made, closed } = makeSet();
  expect(set.apply(entries("a", "b", "c"))).toEqual({ added: ["a", "b", "c"], changed: [], removed: [] });
  const [a, b, c] = made;
  const before = set.get("a");
  expect(set.apply(entries("a", "b:8443", "d"))).toEqual({ added: ["d"], changed: ["b"], removed: ["c"] });
  expect(set.names()).toEqual(["a", "b", "d"]);
  expect(set.get("a")).toBe(before);
  expect(set.get("c")).toBeUndefined();
  await expect.poll(() => closed).toEqual([b, c]);
  expect(closed).not.toContain(a);
});

test("another concurrency is taken over without a new instance", () => {
  const { set, made } = makeSet();
  set.apply(entries("a"));
  set.apply(entries("a").map((entry) => ({ ...entry, concurrency: 3 })));
  expect(made).toHaveLength(1);
  expect(set.entry("a")?.concurrency).toBe(3);
});

test("a removed provider is closed only after its running call, and takes no new one", async () => {
  const { set, made, closed } = makeSet();
  set.apply(entries("a"));
  const provider = set.get("a");
  const release = made[0]?.faults.hold("list");
  const running = provider?.list(call);
  set.apply(entries("b"));
  await expect(provider?.list(call)).rejects.toMatchObject({ class: "Transient", code: "ProviderReplaced" });
  expect(closed).toEqual([]);
  release?.();
  await expect(running).resolves.toMatchObject({ complete: true });
  await expect.poll(() => closed).toEqual([made[0]]);
});

test("closing the set waits for the running calls of all", async () => {
  const { set, made, closed } = makeSet();
  set.apply(entries("a", "b"));
  const release = made[1]?.faults.hold("list");
  const running = set.get("b")?.list(call);
  const done = set.close();
  await expect.poll(() => closed).toEqual([made[0]]);
  release?.();
  await Promise.all([running, done]);
  expect(closed).toEqual(made);
});

test("a provider that cannot be built changes nothing", () => {
  const set = new ProviderSet({
    create: ({ name }) => {
      if (name === "bad") throw new Error("no");
      return new MemoryProvider({ name });
    },
    onCloseError: () => undefined,
  });
  set.apply(entries("a"));
  const before = set.get("a");
  expect(() => set.apply(entries("bad"))).toThrow("no");
  expect(set.get("a")).toBe(before);
});

test("a provider that does not close is reported", async () => {
  const { set, made, closeErrors } = makeSet();
  set.apply(entries("a"));
  const provider = made[0];
  if (provider !== undefined) vi.spyOn(provider, "close").mockRejectedValue(new Error("stuck"));
  set.apply(entries("b"));
  await expect.poll(() => closeErrors).toEqual([["a", new Error("stuck")]]);
});
