import { expect, test } from "vitest";
import type { Identity, Provider } from "#shared/provider/contract.ts";
import { call, cutAt, deleteWhole, identity, type MakeScene, succeeds } from "./scene.ts";

/** A process may be killed, or an answer lost, between any two backend calls. */
export function cutOffRules(scene: MakeScene): void {
  test.each(["before", "after"] as const)(
    "a create cut off %s any backend call is resumed by the next one",
    async (when) => {
      const { backend, provider, request } = await scene();
      let cut = 0;
      for (let done = false; !done; ) {
        cut += 1;
        const one = { ...request, name: `${request.name}-${cut}` };
        backend.hook(cutAt(cut, when));
        done = await succeeds(provider.create(one, call()));
        backend.hook(undefined);
        const { providerID } = await provider.create(one, call());
        expect(await provider.get(providerID, call())).toMatchObject({ name: one.name, uid: one.uid });
        await deleteWhole(provider, identity(one));
        expect(await backend.everything(one.name)).toEqual([]);
      }
      expect(cut).toBeGreaterThan(2);
    },
  );

  test("a create cut off after any backend call is undone by a delete by name", async () => {
    const { backend, provider, request } = await scene();
    let cut = 0;
    for (let done = false; !done; ) {
      cut += 1;
      const { zone: _, ...nameOnly } = identity({ ...request, name: `${request.name}-${cut}` });
      backend.hook(cutAt(cut, "after"));
      done = await succeeds(provider.create({ ...request, name: nameOnly.name }, call()));
      backend.hook(undefined);
      await deleteWhole(provider, nameOnly);
      expect(await backend.everything(nameOnly.name)).toEqual([]);
    }
  });

  test("a delete cut off after any backend call is finished by the next one", async () => {
    const { backend, provider, request } = await scene();
    let cut = 0;
    for (let done = false; !done; ) {
      cut += 1;
      const one = { ...request, name: `${request.name}-${cut}` };
      const { providerID } = await provider.create(one, call());
      backend.hook(cutAt(cut, "after"));
      done = await succeeds(deleteWholeNow(provider, identity(one, providerID)));
      backend.hook(undefined);
      await deleteWhole(provider, identity(one, providerID));
      expect(await backend.everything(one.name)).toEqual([]);
    }
    expect(cut).toBeGreaterThan(2);
  });
}

async function deleteWholeNow(provider: Provider, who: Identity): Promise<void> {
  for (let tries = 0; (await provider.delete(who, call())) === "going"; tries += 1) {
    if (tries > 100) throw new Error("the delete does not end");
  }
}
