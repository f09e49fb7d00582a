import { randomUUID } from "node:crypto";
import type { CreateRequest } from "#shared/provider/contract.ts";
import { withDeadline } from "#shared/provider/decorators/deadline.ts";
import { withMetrics } from "#shared/provider/decorators/metrics.ts";
import { MemoryBackend, type MemoryInstance } from "#test/fakes/memory-backend.ts";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import type { CallHook, ConformanceBackend } from "./backend.ts";
import { providerSuite } from "./provider-suite.ts";

async function memoryBackend(): Promise<ConformanceBackend> {
  const backend = new MemoryBackend();
  const providers: MemoryProvider[] = [];
  const find = ({ zone, name }: CreateRequest): MemoryInstance | undefined => backend.instances.get(`${zone}/${name}`);
  const change = async (request: CreateRequest, changes: Partial<MemoryInstance>): Promise<void> => {
    Object.assign(find(request) ?? {}, changes);
  };
  return {
    provider: (installation, told) => {
      const provider = new MemoryProvider({ name: "lab", backend, installation, deletePolls: 0 });
      providers.push(provider);
      return withMetrics(withDeadline(provider), (call) => void told.calls.push(call));
    },
    owner: async () => ({ uid: randomUUID(), namespace: "crawl", proxyName: "p" }),
    hook: (hook) => {
      backend.onStep = numbered(hook);
    },
    run: (request) => change(request, { state: "Running" }),
    halt: (request) => change(request, { state: "Stopped" }),
    confuse: async () => undefined,
    vanish: async (request) => void backend.instances.delete(`${request.zone}/${request.name}`),
    slowDeletion: (request) => change(request, { pollsUntilGone: 1 }),
    finishDeletion: async () => undefined,
    foreign: async (request, marks) => void providers[0]?.addForeign(request.name, marks, request.zone),
    everything: async (name) =>
      [
        ...[...backend.instances.values()].map((one) => ({ kind: "instance", name: one.name })),
        ...[...backend.disks.values()].map((disk) => ({ kind: "disk", name: disk.instanceName })),
      ]
        .filter((one) => one.name === name)
        .map((one) => `${one.kind} ${one.name}`),
    breakPartOfList: () => void Object.assign(providers.at(-1) ?? {}, { incomplete: true }),
    malformedIDs: ["", "x", "memory/zone-a", "memory/zone-a/b/c", "other/zone-a/b"],
    impossiblePlacement: { zone: "nowhere" },
    stop: async () => undefined,
  };
}

function numbered(hook: CallHook | undefined): MemoryBackend["onStep"] {
  let number = 0;
  if (hook === undefined) return undefined;
  return ({ when }) => {
    if (when === "before") number += 1;
    return hook({ number, when });
  };
}

providerSuite("the memory provider", memoryBackend);
