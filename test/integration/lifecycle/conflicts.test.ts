import { expect, test } from "vitest";
import { instanceName } from "#shared/domain/instance-name.ts";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import { conditionOf } from "./user.ts";
import { startWorld } from "./world.ts";

test("A name that a foreign instance has taken stalls the Proxy, and the foreign one is never touched", async () => {
  const { user, configure, installation } = await startWorld();
  const { metadata } = await user.apply("p1");
  const lab = new MemoryProvider({ name: "lab" });
  const name = instanceName({ installation: installation.id, uid: metadata.uid, incarnation: 1 });
  const foreign = structuredClone(lab.addForeign(name, { uid: metadata.uid, incarnation: 1, installation: "other" }));
  await configure(lab);
  const stalled = await user.until("p1", (proxy) =>
    expect(conditionOf(proxy, "Stalled")).toMatchObject({ status: "True", reason: "NameConflict" }),
  );
  expect(stalled.status.phase).toBe("Failed");
  expect([...lab.instances.values()]).toEqual([foreign]);
  await user.delete("p1");
  await user.untilGone("p1");
  expect([...lab.instances.values()]).toEqual([foreign]);
});

test("Somebody who edits the Proxy between the read and the status write only makes the run begin again", async () => {
  const lab = new MemoryProvider({ name: "lab" });
  const { user, intercept, reports } = await startWorld({ providers: [lab] });
  const edits: string[] = [];
  let isSecondTry = false;
  intercept(async (_uid, what, call) => {
    if (what === "write status") {
      isSecondTry = !isSecondTry;
      const edit = `edit-${edits.length}`;
      if (isSecondTry) await user.patch("p1", { metadata: { annotations: { [edit]: "mine" } } });
      if (isSecondTry) edits.push(edit);
    }
    return await call();
  });
  await user.apply("p1");
  const { metadata, status } = await user.untilReady("p1");
  expect(edits.length).toBeGreaterThanOrEqual(3); // intent, created, running
  expect(Object.keys(metadata.annotations).sort()).toEqual(edits.sort());
  expect(reports.filter(({ failure }) => failure?.code === "Conflict")).toHaveLength(edits.length);
  expect([...lab.instances.keys()]).toEqual([status.instance?.name]);
  await user.delete("p1");
  await user.untilGone("p1");
  expect(lab.instances.size + lab.backend.disks.size).toBe(0);
});
