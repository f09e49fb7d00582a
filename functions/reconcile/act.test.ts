import { expect, test } from "vitest";
import type { Effect } from "#shared/domain/plan-reconcile.ts";
import { Failure } from "#shared/errors/failure.ts";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import { makeInstance, makeProxy } from "#test/fixtures/proxy.ts";
import { type ActDeps, act } from "./act.ts";

const proxy = makeProxy();
const fresh = makeInstance({ incarnation: 2, zone: "zone-a", providerID: undefined });
const old = makeInstance({ incarnation: 1, zone: "zone-a", providerID: undefined });
const create: Effect = { kind: "create", instance: fresh };
const remove: Effect = { kind: "delete", instance: old };
const transient = new Failure({ class: "Transient", code: "Timeout", message: "no answer" });
const superseded = new Failure({ class: "Transient", code: "Superseded", message: "a newer run has the key" });

/** A provider that still has the old incarnation; `order` tells what was asked before each of its calls. */
async function setUp(overrides: Partial<ActDeps> = {}) {
  const lab = new MemoryProvider({ name: "lab", deletePolls: 0 });
  const owner = { uid: proxy.metadata.uid, incarnation: 1, installation: "inst234567" };
  lab.addForeign(old.name, owner);
  const order: string[] = [];
  const ask = (what: string) => () => Promise.resolve(void order.push(what));
  const untouched = () => Promise.reject(new Error("the Proxy was not to be touched"));
  const deps: ActDeps = {
    proxies: { addFinalizer: untouched, removeFinalizer: untouched },
    provider: lab,
    installation: "inst234567",
    fence: { token: 1, check: ask("fence"), renewRead: () => undefined },
    signal: new AbortController().signal,
    values: { auth: undefined, cloudInit: undefined },
    confirm: ask("confirm"),
    ...overrides,
  };
  return { lab, order, deps };
}

test("at most one effect takes effect: the first that does ends the run", async () => {
  const { lab, deps } = await setUp();
  const { done } = await act(proxy, [create, remove], deps);
  expect(done).toEqual({ effect: create, providerID: `memory/zone-a/${fresh.name}` });
  expect(lab.calls.map(({ op }) => op)).toEqual(["create"]);
});

test("an effect that fails lets the next one be tried, and is reported", async () => {
  const { lab, deps } = await setUp();
  lab.failNext("create", transient);
  const outcome = await act(proxy, [create, remove], deps);
  expect(outcome).toEqual({
    done: { effect: remove },
    going: [],
    failed: [{ effect: create, failure: transient }],
  });
  expect(lab.instances.size).toBe(0);
});

test("a delete that is still going lets the next one be tried", async () => {
  const { lab, deps } = await setUp();
  Object.assign(lab.instances.get(old.name) ?? {}, { pollsUntilGone: 1 });
  const { done, going } = await act(proxy, [remove, create], deps);
  expect(going).toEqual([remove]);
  expect(done?.effect).toBe(create);
});

test("what was read is confirmed, and then the fence asked, before a provider is", async () => {
  const { order, deps } = await setUp();
  await act(proxy, [create], deps);
  await act(proxy, [remove], deps);
  expect(order).toEqual(["confirm", "fence", "confirm", "fence"]);
});

test("a run that was overtaken calls no provider, and ends", async () => {
  for (const refusal of ["confirm", "fence"]) {
    const refuse = () => Promise.reject(superseded);
    const fence = { token: 1, check: refuse, renewRead: () => undefined };
    const { lab, deps } = await setUp(refusal === "fence" ? { fence } : { confirm: refuse });
    await expect(act(proxy, [create, remove], deps)).rejects.toBe(superseded);
    expect(lab.calls).toEqual([]);
  }
});

test("a run that is cut off tries nothing more", async () => {
  const stop = new AbortController();
  const { lab, deps } = await setUp({ signal: stop.signal });
  lab.faults.hold("create");
  const run = act(proxy, [create, remove], deps);
  await expect.poll(() => lab.faults.count("create")).toBe(1);
  stop.abort();
  await expect(run).rejects.toMatchObject({ code: "Timeout" });
  expect(lab.calls.map(({ op }) => op)).toEqual(["create"]);
});
