import { expect, test } from "vitest";
import { Failure } from "#shared/errors/failure.ts";
import type { Proxy } from "#shared/model/proxy.ts";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import { makeInstance, makeProxy } from "#test/fixtures/proxy.ts";
import { now, readyStatus } from "#test/fixtures/situation.ts";
import { type GatherDeps, gather } from "./gather.ts";

const call = { signal: new AbortController().signal };
const verdict = { healthy: true, reason: "Ok", message: "It answers.", at: now, observedIP: undefined };
const providerID = "memory/zone-a/vm-1";

function setUp(overrides: Partial<GatherDeps> = {}) {
  const lab = new MemoryProvider({ name: "lab" });
  const deps: GatherDeps = {
    secrets: { read: () => Promise.resolve(undefined) },
    fleet: { look: () => Promise.resolve({ registered: false, verdict: undefined, trouble: undefined }) },
    installation: { id: "inst234567", hashKey: Buffer.from("key") },
    now: () => now,
    ...overrides,
  };
  const look = (proxy: Proxy) => gather(proxy, lab, deps, call);
  return { lab, deps, look };
}

const created = makeProxy({ status: { instance: makeInstance({ providerID }) } });
const settled = makeProxy({ status: { ...readyStatus(), instance: makeInstance({ providerID }) } });

test("a settled instance is not read: its provider is asked nothing", async () => {
  const { lab, look } = setUp({
    fleet: { look: () => Promise.resolve({ registered: true, verdict, trouble: undefined }) },
  });
  expect((await look(settled)).situation).toMatchObject({ view: { kind: "unread" }, verdict });
  expect(lab.calls).toEqual([]);
});

test("an emptied Redis is made up for by what the status remembers", async () => {
  const { lab, look } = setUp();
  expect((await look(settled)).situation.verdict).toMatchObject({ healthy: true });
  expect(lab.calls).toEqual([]);
});

test("an instance that fails its probes is read", async () => {
  const { lab, look } = setUp({
    fleet: {
      look: () => Promise.resolve({ registered: true, verdict: { ...verdict, healthy: false }, trouble: undefined }),
    },
  });
  lab.addForeign("vm-1");
  expect((await look(settled)).situation.view).toMatchObject({ kind: "seen", state: "Running" });
});

test("only a proven NotFound is absence; any other failure is not knowing", async () => {
  const { lab, look } = setUp();
  expect((await look(created)).situation.view).toEqual({ kind: "absent" });
  const failure = new Failure({ class: "Transient", code: "Timeout", message: "no answer" });
  lab.failNext("get", failure);
  expect((await look(created)).situation.view).toEqual({ kind: "unknown", failure });
});

test("without a provider nothing is read, and there is no place", async () => {
  const { deps } = setUp();
  const { situation } = await gather(created, undefined, deps, call);
  expect(situation).toMatchObject({ configured: false, view: { kind: "unread" }, place: undefined });
});

test("a placement that its provider refuses is gathered as a failure", async () => {
  const { look } = setUp();
  const { situation } = await look(makeProxy({ spec: { placement: { zone: "nowhere" } } }));
  expect(situation.place).toMatchObject({ failure: { class: "Permanent", code: "InvalidPlacement" } });
});

test("a missing Secret is gathered as a failure, and there are no values", async () => {
  const { look } = setUp();
  const { situation, values } = await look(makeProxy({ spec: { auth: { secretRef: { name: "login" } } } }));
  expect(situation.wanted).toMatchObject({ failure: { code: "SecretMissing" } });
  expect(values).toBeUndefined();
});

test("a Secret that may not be read is gathered as a failure, one that cannot be read just now is thrown", async () => {
  const login = makeProxy({ spec: { auth: { secretRef: { name: "login" } } } });
  const refused = new Failure({ class: "Permanent", code: "Forbidden", message: "no" });
  const forbidden = await setUp({ secrets: { read: () => Promise.reject(refused) } }).look(login);
  expect([forbidden.situation.wanted, forbidden.values]).toEqual([{ failure: refused }, undefined]);
  const away = new Failure({ class: "Transient", code: "Unavailable", message: "away" });
  await expect(setUp({ secrets: { read: () => Promise.reject(away) } }).look(login)).rejects.toBe(away);
});

test("neither a deletion nor the run that adds the finalizer reads a Secret: one that cannot be read must not hold it back", async () => {
  const away = new Failure({ class: "Transient", code: "Unavailable", message: "away" });
  const { look } = setUp({ secrets: { read: () => Promise.reject(away) } });
  const auth = { secretRef: { name: "login" } };
  const status = { instance: makeInstance({ providerID }) };
  await expect(look(makeProxy({ spec: { auth }, status }))).rejects.toBe(away);
  const metadata = { deletionTimestamp: "2026-12-01T00:59:00Z" };
  expect((await look(makeProxy({ metadata, spec: { auth }, status }))).situation.view).toEqual({ kind: "unread" });
  const fresh = makeProxy({ metadata: { finalizers: [] }, spec: { auth } });
  expect((await look(fresh)).situation.wanted).toHaveProperty("specHash");
});
