import { expect, test } from "vitest";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import { conditionOf, instanceOf } from "./user.ts";
import { startWorld } from "./world.ts";

const laterThanTheInterval = 31_000;

test("A changed port makes a new incarnation, and the old one goes", async () => {
  const lab = new MemoryProvider({ name: "lab" });
  const { user } = await startWorld({ providers: [lab] });
  await user.apply("p1");
  const before = instanceOf(await user.untilReady("p1"));
  await user.patch("p1", { spec: { port: 3129 } });
  const after = await user.untilReady("p1", 2);
  expect(after.status.endpoint?.port).toBe(3129);
  expect(instanceOf(after).name).not.toBe(before.name);
  expect([...lab.instances.keys()]).toEqual([instanceOf(after).name]);
});

test("A label that changed replaces nothing", async () => {
  const lab = new MemoryProvider({ name: "lab" });
  const { user, fleet } = await startWorld({ providers: [lab] });
  await user.apply("p1");
  await user.untilReady("p1");
  await user.patch("p1", { metadata: { labels: { team: "search" } } });
  await expect.poll(async () => (await fleet.readByName(user.key("p1")))?.labels).toEqual({ team: "search" });
  expect(lab.faults.count("create")).toBe(1);
});

for (const fate of ["stop", "vanish"] as const) {
  test(`An instance that did ${fate} is not leased any more, and replaced once its interval is over`, async () => {
    const lab = new MemoryProvider({ name: "lab" });
    const world = await startWorld({ providers: [lab] });
    const { user } = world;
    await user.apply("p1");
    const { name } = instanceOf(await user.untilReady("p1"));
    lab[fate](name);
    await user.probe("p1", false);
    const reason = fate === "stop" ? "InstanceStopped" : "InstanceVanished";
    const dead = await user.until("p1", (proxy) => expect(conditionOf(proxy, "Ready")).toMatchObject({ reason }));
    expect(instanceOf(dead).incarnation).toBe(1);
    expect(await world.fleet.readByName(user.key("p1"))).toBeUndefined();

    world.advance(laterThanTheInterval);
    await user.nudge("p1");
    const { status } = await user.untilReady("p1", 2);
    expect([...lab.instances.keys()]).toEqual([status.instance?.name]);
    expect(lab.backend.disks.size).toBe(1);
  });
}

test("An instance that its provider cannot read is kept, whatever its probes say", async () => {
  const lab = new MemoryProvider({ name: "lab" });
  const world = await startWorld({ providers: [lab] });
  const { user } = world;
  await user.apply("p1");
  const { name } = instanceOf(await user.untilReady("p1"));
  world.advance(laterThanTheInterval);
  lab.backend.onStep = () => {
    throw new Error("the backend is away");
  };
  await user.probe("p1", false);
  await user.until("p1", (proxy) => expect(conditionOf(proxy, "Reconciling")?.reason).toBe("WaitingForRetry"));
  lab.backend.onStep = undefined;
  await user.probe("p1");
  const { status } = await user.untilReady("p1");
  expect(status.instance?.name).toBe(name);
});
