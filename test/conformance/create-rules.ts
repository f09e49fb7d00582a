import { expect, test } from "vitest";
import { call, deleteWhole, failure, identity, type MakeScene } from "./scene.ts";

/** What create promises. */
export function createRules(scene: MakeScene): void {
  test("a repeated create returns the same instance and makes nothing new", async () => {
    const { backend, provider, request } = await scene();
    const first = await provider.create(request, call());
    const made = await backend.everything(request.name);
    expect(await provider.create(request, call())).toEqual(first);
    expect(await backend.everything(request.name)).toEqual(made);
  });

  test("concurrent creates of one name make one instance", async () => {
    const { backend, provider, request } = await scene();
    const alone = { ...request, name: `${request.name}-alone` };
    await provider.create(alone, call());
    const results = await Promise.all([1, 2, 3, 4].map(() => provider.create(request, call())));
    expect(new Set(results.map((result) => result.providerID)).size).toBe(1);
    expect(await backend.everything(request.name)).toHaveLength((await backend.everything(alone.name)).length);
  });

  test("a foreign instance with our name is a NameConflict and stays untouched", async () => {
    const { backend, provider, request } = await scene();
    const { uid, installation } = request;
    const others = [
      undefined,
      { uid: `${uid}0`, incarnation: 1, installation },
      { uid, incarnation: 11, installation },
      { uid, incarnation: 1, installation: `${installation}x` },
    ];
    for (const [index, marks] of others.entries()) {
      const mine = { ...request, name: `${request.name}-${index}` };
      await backend.foreign(mine, marks);
      await expect(provider.create(mine, call())).rejects.toEqual(
        failure({ class: "Permanent", code: "NameConflict" }),
      );
      await deleteWhole(provider, identity(mine));
      expect(await backend.everything(mine.name)).toHaveLength(1);
    }
  });

  test("place is the same every time, and refuses for good what can never work", async () => {
    const { backend, provider, request } = await scene();
    const possible = { placement: {}, port: request.port, hasAuth: true };
    expect(provider.place(possible)).toBe(request.zone);
    if (backend.impossiblePlacement === undefined) return;
    const placement = backend.impossiblePlacement;
    const place = () => provider.place({ ...possible, placement });
    expect(place).toThrow(failure({ class: "Permanent" }));
    expect(place).toThrow(placement.zone);
  });
}
