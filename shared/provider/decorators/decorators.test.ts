import { expect, test } from "vitest";
import { Failure } from "#shared/errors/failure.ts";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import type { Call, Identity } from "../contract.ts";
import { defaultDeadlinesMs, withDeadline } from "./deadline.ts";
import { type ProviderCall, withMetrics } from "./metrics.ts";

const call: Call = { signal: new AbortController().signal };
const soon = { create: 20, get: 20, delete: 20, list: 20 };
const identity: Identity = { name: "n", namespace: "ns", uid: "u", incarnation: 1, installation: "i" };
const request = { ...identity, zone: "zone-a", proxyName: "p", port: 1, placement: {} };

test("a call that hangs ends at its deadline; create and delete may have happened all the same", async () => {
  const backend = new MemoryProvider();
  const provider = withDeadline(backend, soon);
  const releases = (["create", "get", "delete", "list"] as const).map((op) => backend.faults.hold(op));
  const timeout = { class: "Transient", code: "Timeout", provider: "memory" };
  const unknownEffect = { ...timeout, ambiguous: true };
  await expect(provider.create(request, call)).rejects.toMatchObject({ ...unknownEffect, op: "create" });
  await expect(provider.delete(identity, call)).rejects.toMatchObject({ ...unknownEffect, op: "delete" });
  const read = { ...timeout, ambiguous: false };
  await expect(provider.get("memory/zone-a/n", call)).rejects.toMatchObject({ ...read, providerID: "memory/zone-a/n" });
  await expect(provider.list(call)).rejects.toMatchObject({ ...read, op: "list" });
  for (const release of releases) release();
});

test("a caller's timeout is a Timeout too, any other reason is Aborted", async () => {
  const backend = new MemoryProvider();
  const provider = withDeadline(backend);
  const release = backend.faults.hold("list");
  await expect(provider.list({ signal: AbortSignal.timeout(10) })).rejects.toMatchObject({ code: "Timeout" });
  await expect(provider.list({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "Aborted" });
  release();
});

test("the backend's own answer and failure pass through", async () => {
  const backend = new MemoryProvider();
  const provider = withDeadline(backend, defaultDeadlinesMs);
  await expect(provider.list(call)).resolves.toMatchObject({ complete: true });
  const failure = new Failure({ class: "QuotaExceeded", code: "Stockout", message: "none left" });
  backend.failNext("create", failure);
  await expect(provider.create(request, call)).rejects.toBe(failure);
});

test("every call is counted once, by its result", async () => {
  const backend = new MemoryProvider({ name: "lab" });
  const seen: ProviderCall[] = [];
  const provider = withMetrics(withDeadline(backend, soon), (one) => void seen.push(one));
  await provider.create(request, call);
  await expect(provider.get("memory/zone-a/none", call)).rejects.toThrow("no instance");
  const release = backend.faults.hold("delete");
  await expect(provider.delete(identity, call)).rejects.toThrow("deadline");
  release();
  expect(seen).toEqual([
    { provider: "lab", op: "create", result: "ok" },
    { provider: "lab", op: "get", result: "NotFound" },
    { provider: "lab", op: "delete", result: "Transient" },
  ]);
});
