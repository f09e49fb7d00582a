import { expect, test } from "vitest";
import { call, deleteWhole, identity, type MakeScene } from "./scene.ts";

/** What list shows. */
export function listRules(scene: MakeScene): void {
  test("list shows what is ours with its secondary resources, and ids that delete accepts", async () => {
    const { backend, provider, request } = await scene();
    const { providerID } = await provider.create(request, call());
    const { uid, incarnation, installation, name, namespace } = request;
    const listing = await provider.list(call());
    expect(listing.complete).toBe(true);
    expect(listing.instances).toEqual([expect.objectContaining({ providerID, name, uid, incarnation, installation })]);
    const size = listing.instances.length + listing.resources.length;
    expect(size).toBe((await backend.everything(name)).length);
    for (const resource of listing.resources) {
      expect(resource).toMatchObject({ instanceName: name, uid, incarnation, installation, namespace });
      await deleteWhole(provider, { ...identity(request), zone: undefined, providerID: resource.providerID });
    }
    await deleteWhole(provider, identity(request, providerID));
    expect(await provider.list(call())).toEqual({ instances: [], resources: [], complete: true });
  });

  test("two installations on one backend do not see each other", async () => {
    const [one, two] = [await scene(), await scene()];
    await one.provider.create(one.request, call());
    await two.provider.create(two.request, call());
    const names = (await one.provider.list(call())).instances.map((instance) => instance.name);
    expect(names).toEqual([one.request.name]);
    await deleteWhole(one.provider, { ...identity(one.request), name: two.request.name });
    expect(await two.backend.everything(two.request.name)).not.toEqual([]);
  });

  test("what is unmarked is never listed, an empty uid still is", async () => {
    const { backend, provider, request } = await scene();
    await backend.foreign({ ...request, name: `${request.name}-unmarked` });
    await backend.foreign(request, { uid: "", incarnation: 1, installation: request.installation });
    const { instances } = await provider.list(call());
    expect(instances).toEqual([expect.objectContaining({ name: request.name, uid: "" })]);
  });

  test("a listing that could not read everything says so", async () => {
    const { backend, provider, request } = await scene();
    await provider.create(request, call());
    if (backend.breakPartOfList === undefined) return;
    backend.breakPartOfList();
    expect(await provider.list(call())).toMatchObject({ complete: false });
  });
}
