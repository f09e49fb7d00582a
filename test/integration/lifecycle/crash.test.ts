import { expect, test } from "vitest";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import { aroundCrashes, Crash, type CrashPoint, crashPoints } from "./crash.ts";
import { startWorld, type World } from "./world.ts";

/** Created, replaced and deleted; `check` is called whenever it should have exactly one instance. */
async function wholeLife({ user }: World, name: string, check: (incarnation: number) => void): Promise<void> {
  await user.untilReady(name, 1);
  check(1);
  await user.patch(name, { spec: { port: 3129 } });
  await user.untilReady(name, 2);
  check(2);
  await user.delete(name);
  await user.untilGone(name);
}

/** Applies a Proxy for each crash, and lets none of them run before all are there. Answers with uids by name. */
async function applyAll(world: World, crashes: Map<string, Crash>): Promise<Map<string, string>> {
  const byUid = new Map<string, Crash>();
  const uids = new Map<string, string>();
  const begun = Promise.withResolvers<void>();
  world.intercept(aroundCrashes(byUid, begun.promise));
  for (const [name, crash] of crashes) {
    const { metadata } = await world.user.apply(name);
    byUid.set(metadata.uid, crash);
    uids.set(name, metadata.uid);
  }
  begun.resolve();
  return uids;
}

/** Lives through a whole life for each of these crashes, all at once. */
async function liveThrough(world: World, lab: MemoryProvider, crashes: Map<string, Crash>): Promise<void> {
  const uids = await applyAll(world, crashes);
  const instances = (name: string) =>
    [...lab.backend.instances.values()].filter((instance) => instance.uid === uids.get(name));
  const lives = [...crashes.keys()].map((name) =>
    wholeLife(world, name, (incarnation) =>
      expect(instances(name), name).toEqual([expect.objectContaining({ incarnation })]),
    ),
  );
  await Promise.all(lives);
}

const nameOf = ({ what, nth, when }: CrashPoint): string => `${when}-${what.replace(" ", "-")}-${nth}`;

/** How often it polls, and registers then, varies; the first call of each kind is in every life. */
function missed(crashes: Map<string, Crash>): string[] {
  return [...crashes].flatMap(([name, crash]) => (!crash.happened && name.endsWith("-1") ? [name] : []));
}

test("A process that dies before or after any outside call leaves one instance in the end, and none of a deleted Proxy", async () => {
  const lab = new MemoryProvider({ name: "lab" });
  const foreign = structuredClone(lab.addForeign("proxy-foreign", { uid: "other", installation: "other234567" }));
  const world = await startWorld({ providers: [lab] });
  const undisturbed = new Crash();
  await liveThrough(world, lab, new Map([["undisturbed", undisturbed]]));

  const crashes = new Map(crashPoints(undisturbed.calls).map((point) => [nameOf(point), new Crash(point)]));
  await liveThrough(world, lab, crashes);

  expect([...lab.backend.instances.values()]).toEqual([foreign]);
  expect([...lab.backend.disks]).toEqual([]);
  expect(missed(crashes)).toEqual([]);
  expect(crashes.size).toBeGreaterThan(40);
});

test("A Proxy that is deleted just when the process that creates it dies leaves nothing", async () => {
  const lab = new MemoryProvider({ name: "lab" });
  const world = await startWorld({ providers: [lab] });
  const calls = ["add finalizer", "write status", "create", "write status", "register"] as const;
  const points = crashPoints(calls);
  const crashes = new Map(
    points.map((point) => [nameOf(point), new Crash(point, () => world.user.delete(nameOf(point)))]),
  );
  await applyAll(world, crashes);
  for (const name of crashes.keys()) await world.user.untilGone(name);
  expect(missed(crashes)).toEqual([]);
  expect(lab.backend.instances.size + lab.backend.disks.size).toBe(0);
  expect((await world.fleet.names()).size).toBe(0);
});
