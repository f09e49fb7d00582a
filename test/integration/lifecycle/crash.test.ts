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

/** Lives through a whole life for each of these crashes, all at once. */
async function liveThrough(world: World, lab: MemoryProvider, lives: { name: string; crash: Crash }[]): Promise<void> {
  const crashes = new Map<string, Crash>();
  const uids = new Map<string, string>();
  const begun = Promise.withResolvers<void>();
  world.intercept(aroundCrashes(crashes, begun.promise));
  for (const { name, crash } of lives) {
    const { metadata } = await world.user.apply(name);
    crashes.set(metadata.uid, crash);
    uids.set(name, metadata.uid);
  }
  begun.resolve();
  const instances = (name: string) =>
    [...lab.backend.instances.values()].filter((instance) => instance.uid === uids.get(name));
  await Promise.all(
    lives.map(({ name }) =>
      wholeLife(world, name, (incarnation) =>
        expect(instances(name), name).toEqual([expect.objectContaining({ incarnation })]),
      ),
    ),
  );
}

test("A process that dies before or after any outside call leaves one instance in the end, and none of a deleted Proxy", async () => {
  const lab = new MemoryProvider({ name: "lab" });
  const foreign = structuredClone(lab.addForeign("proxy-foreign", { uid: "other", installation: "other234567" }));
  const world = await startWorld({ providers: [lab] });
  const undisturbed = new Crash();
  await liveThrough(world, lab, [{ name: "undisturbed", crash: undisturbed }]);

  const nameOf = ({ what, nth, when }: CrashPoint) => `${when}-${what.replace(" ", "-")}-${nth}`;
  const lives = crashPoints(undisturbed.calls).map((point) => ({ name: nameOf(point), crash: new Crash(point) }));
  await liveThrough(world, lab, lives);

  expect([...lab.backend.instances.values()]).toEqual([foreign]);
  expect([...lab.backend.disks]).toEqual([]);
  // How often it polls, and registers then, varies; the first call of each kind is in every life.
  const missed = lives.filter(({ name, crash }) => !crash.happened && name.endsWith("-1"));
  expect(missed.map(({ name }) => name)).toEqual([]);
  expect(lives.length).toBeGreaterThan(40);
});
