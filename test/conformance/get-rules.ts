import { expect, test } from "vitest";
import { call, deleteWhole, failure, identity, type MakeScene } from "./scene.ts";

/** What get says, and when it may say NotFound. */
export function getRules(scene: MakeScene): void {
  test("what was just created is found, and never Stopped before it started", async () => {
    const { provider, request } = await scene();
    const { providerID } = await provider.create(request, call());
    const instance = await provider.get(providerID, call());
    expect(["Provisioning", "Running"]).toContain(instance.state);
    expect(instance.state === "Running").toBe(instance.ip !== undefined);
  });

  test("the marks and the time of creation are read back", async () => {
    const { provider, request } = await scene();
    const { providerID } = await provider.create({ ...request, incarnation: 12 }, call());
    const { name, uid, installation, zone } = request;
    const instance = await provider.get(providerID, call());
    expect(instance).toMatchObject({ providerID, name, uid, installation, zone, incarnation: 12 });
    expect(Math.abs(Date.now() - instance.createdAt.getTime())).toBeLessThan(3_600_000);
  });

  test("Running comes with an address, a stop and an unknown state are Stopped", async () => {
    const { backend, provider, request } = await scene();
    const { providerID } = await provider.create(request, call());
    await backend.run(request);
    const running = await provider.get(providerID, call());
    expect(running.state).toBe("Running");
    expect(running.ip).toMatch(/^[\d.]+$|:/);
    await backend.halt(request);
    expect(await provider.get(providerID, call())).toMatchObject({ state: "Stopped" });
    await backend.confuse(request);
    expect(await provider.get(providerID, call())).toMatchObject({ state: "Stopped" });
  });

  test("an instance is returned while its deletion is under way, then it is NotFound", async () => {
    const { backend, provider, request } = await scene();
    const { providerID } = await provider.create(request, call());
    await backend.run(request);
    await backend.slowDeletion(request);
    expect(await provider.delete(identity(request, providerID), call())).toBe("going");
    expect(await provider.get(providerID, call())).toMatchObject({ name: request.name });
    await backend.finishDeletion(request);
    await deleteWhole(provider, identity(request, providerID));
    await expect(provider.get(providerID, call())).rejects.toEqual(failure({ class: "NotFound" }));
  });

  test("what vanished is NotFound, and can be deleted with all that it left", async () => {
    const { backend, provider, request } = await scene();
    const { providerID } = await provider.create(request, call());
    await backend.vanish(request);
    await expect(provider.get(providerID, call())).rejects.toEqual(failure({ class: "NotFound" }));
    await deleteWhole(provider, identity(request, providerID));
    expect(await backend.everything(request.name)).toEqual([]);
  });

  test("a malformed id is Permanent in get and delete", async () => {
    const { backend, provider, request } = await scene();
    for (const providerID of backend.malformedIDs) {
      await expect(provider.get(providerID, call()), providerID).rejects.toEqual(failure({ class: "Permanent" }));
      await expect(provider.delete(identity(request, providerID), call()), providerID).rejects.toEqual(
        failure({ class: "Permanent" }),
      );
    }
  });
}
