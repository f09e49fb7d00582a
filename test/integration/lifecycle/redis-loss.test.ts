import { expect, test } from "vitest";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import { startWorld, type World } from "./world.ts";

const losses: Record<string, (world: World) => Promise<unknown>> = {
  emptied: ({ redis }) => redis.flushall(),
  "killed and started again": async ({ server }) => {
    await server.crash();
    await server.restart();
  },
};

for (const [what, lose] of Object.entries(losses)) {
  test(`Redis ${what}: registry and verdicts come back, without a provider call or a write`, async () => {
    const lab = new MemoryProvider({ name: "lab" });
    const world = await startWorld({ providers: [lab] });
    const { user, fleet } = world;
    for (const name of ["good", "bad"]) await user.apply(name);
    await user.untilReady("bad");
    await user.probe("bad", false);
    const bad = await user.until("bad", (proxy) => expect(proxy.status.phase).toBe("Unhealthy"));
    const before = [await user.untilReady("good"), bad];
    const changes = () => lab.calls.filter(({ op }) => op !== "get").length;
    const made = changes();
    const registered = await fleet.readByName(user.key("good"));
    await lose(world);
    await expect.poll(async () => (await fleet.names()).size, { timeout: 20_000, interval: 50 }).toBe(2);
    expect(await fleet.readByName(user.key("good"))).toMatchObject({
      healthy: true,
      host: registered?.host,
      incarnation: 1,
    });
    expect(await fleet.readByName(user.key("bad"))).toMatchObject({ healthy: false });
    expect([await user.read("good"), await user.read("bad")]).toEqual(before);
    expect(changes()).toBe(made);
  });
}

test("Redis emptied while an instance is created: one instance in the end", async () => {
  const lab = new MemoryProvider({ name: "lab" });
  const { user, redis } = await startWorld({ providers: [lab] });
  const release = lab.faults.hold("create", "after");
  await user.apply("p1");
  await expect.poll(() => lab.instances.size).toBe(1);
  await redis.flushall();
  release();
  const { status } = await user.untilReady("p1");
  expect([...lab.instances.keys()]).toEqual([status.instance?.name]);
});
