import { expect, test, vi } from "vitest";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import { startWorld } from "./world.ts";

test("An undisturbed life costs at most 8 writes to the Proxy, and steady state none, nor a provider call", async () => {
  const lab = new MemoryProvider({ name: "lab", polls: 3, deletePolls: 3 });
  const { user, reports } = await startWorld({ providers: [lab], resyncSeconds: 0.1 });
  await user.apply("p1");
  const ready = await user.untilReady("p1");

  const [calls, runs] = [lab.calls.length, reports.length];
  await vi.waitFor(() => expect(reports.length).toBeGreaterThan(runs + 5), { timeout: 10_000 });
  expect(lab.calls.slice(calls)).toEqual([]);
  expect((await user.read("p1")).metadata.resourceVersion).toBe(ready.metadata.resourceVersion);

  await user.delete("p1");
  await user.untilGone("p1");
  const ofTheUser = 2; // the apply and the delete

  expect(user.versions("p1") - ofTheUser).toBeLessThanOrEqual(8);
  expect(lab.backend.instances.size + lab.backend.disks.size).toBe(0);
  expect(reports.filter(({ failure }) => failure !== undefined)).toEqual([]);
});
