import { inspect } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import type { Call } from "#shared/provider/contract.ts";
import { call, cutAt, failure, identity, type MakeScene, sentinels } from "./scene.ts";

/** Deadlines and cancellation. */
export function callRules(scene: MakeScene): void {
  test("every call returns at once when its signal fires although the backend hangs", async () => {
    const { backend, provider, request } = await scene();
    const hung = Promise.withResolvers<void>();
    onTestFinished(() => hung.resolve());
    const { providerID } = await provider.create(request, call());
    const calls: [boolean, (its: Call) => Promise<unknown>][] = [
      [true, (its) => provider.create({ ...request, name: `${request.name}-b` }, its)],
      [false, (its) => provider.get(providerID, its)],
      [true, (its) => provider.delete(identity(request, providerID), its)],
      [false, (its) => provider.list(its)],
    ];
    for (const [ambiguous, invoke] of calls) {
      const controller = new AbortController();
      const reached = new Promise<void>((resolve) => {
        backend.hook(() => {
          resolve();
          return hung.promise;
        });
      });
      const outcome = expect(invoke({ signal: controller.signal })).rejects.toEqual(
        failure({ class: "Transient", ambiguous }),
      );
      await reached;
      controller.abort();
      await outcome;
    }
  });

  test("a call whose signal has fired already does not reach the backend", async () => {
    const { backend, provider, request } = await scene();
    let reached = 0;
    backend.hook(() => void (reached += 1));
    const its = { signal: AbortSignal.abort() };
    await expect(provider.create(request, its)).rejects.toEqual(failure({ class: "Transient", ambiguous: false }));
    await expect(provider.list(its)).rejects.toEqual(failure({ class: "Transient" }));
    expect(reached).toBe(0);
  });
}

/** Secrets go to the backend and nowhere else. */
export function secretRules(scene: MakeScene): void {
  test("credentials and cloudInit are in no error, log or metric", async () => {
    const { backend, provider, request, told } = await scene();
    const errors: unknown[] = [];
    const attempt = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => errors.push(error));
    for (const when of ["before", "after"] as const) {
      for (let cut = 1; cut <= 6; cut += 1) {
        backend.hook(cutAt(cut, when));
        await attempt(provider.create({ ...request, name: `${request.name}-${when}-${cut}` }, call()));
      }
    }
    backend.hook(undefined);
    const foreign = { ...request, name: `${request.name}-foreign` };
    await backend.foreign(foreign);
    await attempt(provider.create(foreign, call()));
    await attempt(provider.create({ ...request, name: "Not A Name" }, call()));
    await attempt(provider.create({ ...request, auth: { username: "a:b", password: sentinels.password } }, call()));
    expect(errors.length).toBeGreaterThan(3);
    expect(told.calls.length).toBeGreaterThan(3);
    const everything = inspect([errors, told], { depth: Number.POSITIVE_INFINITY, showHidden: true });
    for (const secret of Object.values(sentinels)) {
      expect(everything).not.toContain(secret);
      expect(everything).not.toContain(Buffer.from(secret).toString("base64").slice(0, 24));
    }
  });
}
