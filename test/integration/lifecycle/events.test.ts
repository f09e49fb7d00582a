import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import { type Answer, refuse, startScriptedServer } from "#test/fakes/scripted-server.ts";
import { startWorld } from "./world.ts";

const eventList = z.object({ items: z.array(z.object({ reason: z.string(), type: z.string(), message: z.string() })) });

test("What kubectl describe shows tells the life of a Proxy", async () => {
  const lab = new MemoryProvider({ name: "lab" });
  const { user, api } = await startWorld({ providers: [lab] });
  const { metadata } = await user.apply("p1");
  const { status } = await user.untilReady("p1");
  await user.patch("p1", { spec: { port: 3129 } });
  await user.untilReady("p1", 2);
  await user.delete("p1");
  await user.untilGone("p1");

  // The selector that kubectl describe uses.
  const selector = `involvedObject.name=p1,involvedObject.namespace=${api.namespace},involvedObject.kind=Proxy,involvedObject.uid=${metadata.uid}`;
  const path = `/api/v1/namespaces/${api.namespace}/events?fieldSelector=${encodeURIComponent(selector)}`;
  const read = async () => eventList.parse((await api.call("GET", path)).body).items;
  await expect.poll(async () => (await read()).filter(({ reason }) => reason === "InstanceDeleted")).toHaveLength(2);
  const events = await read();
  expect(events).toContainEqual({
    type: "Normal",
    reason: "InstanceLaunched",
    message: `Instance ${status.instance?.name} is running.`,
  });
  expect(events).toContainEqual({
    type: "Normal",
    reason: "InstanceReplaced",
    message: "The spec has changed; making a new instance.",
  });
  const reasons = new Set(events.map(({ reason }) => reason));
  expect([...reasons]).toEqual(expect.arrayContaining(["InstanceCreateRequested", "InstanceReady"]));
});

const answers: [string, Answer][] = [
  ["are refused", refuse(403, "Forbidden")],
  ["are never answered", () => undefined],
];
for (const [what, answer] of answers) {
  test(`Events that ${what} neither fail nor delay a run`, async () => {
    const server = await startScriptedServer(answer);
    onTestFinished(() => server.stop());
    const lab = new MemoryProvider({ name: "lab" });
    const world = await startWorld({ providers: [lab], eventsKubeconfig: server.kubeconfigFile });
    await world.user.apply("p1");
    await world.user.untilReady("p1");
    expect(world.reports.filter(({ failure }) => failure !== undefined)).toEqual([]);
    expect(server.requests.length).toBeGreaterThan(0);
  });
}
