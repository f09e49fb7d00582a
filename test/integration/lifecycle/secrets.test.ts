import { expect, test, vi } from "vitest";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import { conditionOf, instanceOf } from "./user.ts";
import { startWorld } from "./world.ts";

const withLogin = { auth: { secretRef: { name: "login" } } };

test("A login that changed replaces the instance at once, and a lease hands out the new one", async () => {
  const lab = new MemoryProvider({ name: "lab" });
  const { user, fleet } = await startWorld({ providers: [lab] });
  await user.saveLogin("login", "first");
  await user.apply("p1", withLogin);
  await user.untilReady("p1");
  await user.saveLogin("login", "second");
  const { status } = await user.untilReady("p1", 2);
  expect([...lab.instances.keys()]).toEqual([status.instance?.name]);
  expect((await fleet.readByName(user.key("p1")))?.credentials).toEqual({ username: "crawler", password: "second" });
});

test("A Secret that vanished neither replaces the instance nor blocks the deletion", async () => {
  const lab = new MemoryProvider({ name: "lab" });
  const { user, fleet, reports } = await startWorld({ providers: [lab] });
  await user.saveLogin("login", "secret");
  await user.apply("p1", withLogin);
  const ready = await user.untilReady("p1");
  await user.deleteSecret("login");
  const missing = await user.until("p1", (proxy) =>
    expect(conditionOf(proxy, "Reconciling")?.message).toBe(`Secret ${user.key("login")} does not exist.`),
  );
  expect(conditionOf(missing, "Ready")?.status).toBe("True");
  const runs = reports.length;
  await vi.waitFor(() => expect(reports.length).toBeGreaterThan(runs + 3), { timeout: 10_000 });
  const later = await user.read("p1");
  expect(later).toEqual(missing);
  expect(later.status.instance).toEqual(ready.status.instance);
  expect(await fleet.readByName(user.key("p1"))).toMatchObject({ healthy: true, credentials: { password: "secret" } });
  await user.delete("p1");
  await user.untilGone("p1");
  expect(lab.instances.size).toBe(0);
});

test("Without its Secret a running Proxy still follows maxLeases and labels; once Redis is emptied it says that it cannot be leased", async () => {
  const lab = new MemoryProvider({ name: "lab" });
  const { user, fleet, redis } = await startWorld({ providers: [lab] });
  await user.saveLogin("login", "secret");
  await user.apply("p1", withLogin);
  const ready = await user.untilReady("p1");
  await user.deleteSecret("login");
  await user.patch("p1", { metadata: { labels: { team: "a" } }, spec: { maxLeases: 7 } });
  await vi.waitFor(async () =>
    expect(await fleet.readByName(user.key("p1"))).toMatchObject({ max: 7, labels: { team: "a" }, healthy: true }),
  );
  await redis.flushall();
  await user.nudge("p1");
  await user.until("p1", (proxy) =>
    expect(conditionOf(proxy, "Ready")).toMatchObject({
      status: "False",
      message: `It cannot be leased: Secret ${user.key("login")} does not exist.`,
    }),
  );
  await user.saveLogin("login", "secret");
  const again = await user.until("p1", (proxy) => expect(conditionOf(proxy, "Ready")?.status).toBe("True"));
  expect(again.status.instance).toEqual(ready.status.instance);
  expect(await fleet.readByName(user.key("p1"))).toMatchObject({ max: 7, credentials: { password: "secret" } });
});

test("A Secret that is missing is named in the status, and the Proxy goes on once it is made", async () => {
  const lab = new MemoryProvider({ name: "lab" });
  const { user } = await startWorld({ providers: [lab] });
  await user.apply("p1", withLogin);
  await user.until("p1", (proxy) => {
    expect(conditionOf(proxy, "Provisioned")?.message).toBe(`Secret ${user.key("login")} does not exist.`);
    expect(conditionOf(proxy, "Ready")?.status).toBe("False");
  });
  expect(lab.calls).toEqual([]);
  await user.saveLogin("login", "secret");
  expect(instanceOf(await user.untilReady("p1")).incarnation).toBe(1);
});
