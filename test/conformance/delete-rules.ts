import { expect, test } from "vitest";
import type { CreateRequest } from "#shared/provider/contract.ts";
import { call, deleteWhole, identity, type MakeScene } from "./scene.ts";

/** What delete promises. */
export function deleteRules(scene: MakeScene): void {
  test.each([
    ["by id", (request: CreateRequest, id: string) => ({ ...identity(request, id), zone: undefined })],
    ["by name and zone", (request: CreateRequest) => identity(request)],
    ["by name only", (request: CreateRequest) => ({ ...identity(request), zone: undefined })],
  ])("a delete %s leaves nothing and may be repeated", async (_, who) => {
    const { backend, provider, request } = await scene();
    const { providerID } = await provider.create(request, call());
    await backend.run(request);
    expect(await backend.everything(request.name)).not.toEqual([]);
    await provider.delete(who(request, providerID), call());
    await backend.finishDeletion(request);
    await deleteWhole(provider, who(request, providerID));
    expect(await backend.everything(request.name)).toEqual([]);
    expect(await provider.delete(who(request, providerID), call())).toBe("done");
  });

  test("concurrent deletes all succeed", async () => {
    const { backend, provider, request } = await scene();
    const { providerID } = await provider.create(request, call());
    await Promise.all([1, 2, 3].map(() => deleteWhole(provider, identity(request, providerID))));
    expect(await backend.everything(request.name)).toEqual([]);
  });

  test("the delete of one incarnation leaves the next one alone", async () => {
    const { backend, provider, request } = await scene();
    const { providerID } = await provider.create({ ...request, incarnation: 2 }, call());
    const made = await backend.everything(request.name);
    await deleteWhole(provider, identity(request, providerID));
    expect(await backend.everything(request.name)).toEqual(made);
  });
}
