import { expect, test } from "vitest";
import { keys } from "#shared/model/keys.ts";
import { fleetEntry } from "#test/fakes/fleet-entry.ts";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import { conditionOf } from "./user.ts";
import { startWorld } from "./world.ts";

test("A Proxy of a provider that is not configured says so, and is created once it is", async () => {
  const { user, configure } = await startWorld();
  await user.apply("p1");
  const waiting = await user.until("p1", (proxy) =>
    expect(conditionOf(proxy, "Ready")).toMatchObject({ status: "False", reason: "ProviderNotConfigured" }),
  );
  expect(conditionOf(waiting, "Ready")?.message).toContain('"lab"');
  const lab = new MemoryProvider({ name: "lab" });
  await configure(lab);
  await user.untilReady("p1");
  expect(lab.instances.size).toBe(1);
});

test("A Proxy that never had an instance is released although its provider is not configured", async () => {
  const { user } = await startWorld();
  await user.apply("p1");
  await user.until("p1", (proxy) => expect(conditionOf(proxy, "Ready")?.reason).toBe("ProviderNotConfigured"));
  await user.delete("p1");
  await user.untilGone("p1");
});

test("A provider that left the file leaves instance and Ready alone; a deletion waits for it by name", async () => {
  const lab = new MemoryProvider({ name: "lab" });
  const { user, fleet, configure } = await startWorld({ providers: [lab] });
  await user.apply("p1");
  await user.untilReady("p1");
  const calls = lab.calls.length;
  await configure();
  const left = await user.until("p1", (proxy) =>
    expect(conditionOf(proxy, "Provisioned")).toMatchObject({ status: "True", reason: "ProviderNotConfigured" }),
  );
  expect(left.status.phase).toBe("Ready");
  expect(await fleet.readByName(user.key("p1"))).toMatchObject({ healthy: true });

  await user.delete("p1");
  const blocked = await user.until("p1", (proxy) =>
    expect(conditionOf(proxy, "Stalled")).toMatchObject({ status: "True", reason: "DeletionBlocked" }),
  );
  expect(conditionOf(blocked, "Stalled")?.message).toContain('"lab"');
  expect(lab.calls.length).toBe(calls);
  await configure(lab);
  await user.untilGone("p1");
  expect(lab.instances.size).toBe(0);
});

test("A port that changed while the provider is away is not handed out before an instance listens on it", async () => {
  const lab = new MemoryProvider({ name: "lab" });
  const { user, fleet, configure } = await startWorld({ providers: [lab] });
  await user.apply("p1");
  await user.untilReady("p1");
  await configure();
  await user.patch("p1", { spec: { port: 8080, maxLeases: 7 } });
  await expect.poll(async () => (await fleet.readByName(user.key("p1")))?.max).toBe(7);
  expect(await fleet.readByName(user.key("p1"))).toMatchObject({ port: 3128, healthy: true });
  expect((await user.read("p1")).status.endpoint?.port).toBe(3128);
  await configure(lab);
  await user.untilReady("p1", 2);
  expect(await fleet.readByName(user.key("p1"))).toMatchObject({ port: 8080, healthy: true });
});

test("What an earlier Proxy of the same name left in the registry is gone with the first run of the new one", async () => {
  const { api, user, fleet, redis } = await startWorld();
  const seed = { healthy: true, message: "It answered.", at: new Date() };
  await fleet.upsert(fleetEntry({ namespace: api.namespace, uid: "old-uid", seed }), 1);
  await user.apply("p1");
  await user.until("p1", (proxy) => expect(conditionOf(proxy, "Ready")?.reason).toBe("ProviderNotConfigured"));
  expect(await fleet.names()).toEqual(new Set());
  expect(await redis.keys(keys.free("*"))).toEqual([]);
});

test("A provider whose calls hang does not delay the Proxies of another", async () => {
  const sick = new MemoryProvider({ name: "sick" });
  const well = new MemoryProvider({ name: "well" });
  const { user } = await startWorld({ providers: [sick, well] });
  const release = sick.faults.hold("create");
  const names = Array.from({ length: 12 }, (_, index) => `sick-${index}`); // more than run at once
  for (const name of names) await user.apply(name, { provider: "sick" });
  await expect.poll(() => sick.faults.count("create"), { timeout: 10_000 }).toBe(10);
  await user.apply("p1", { provider: "well" });
  await user.untilReady("p1");
  expect(sick.instances.size).toBe(0);
  release();
  await expect.poll(() => sick.instances.size, { timeout: 10_000 }).toBe(names.length);
});
