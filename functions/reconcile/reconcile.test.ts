import { expect, test } from "vitest";
import { specHash } from "#shared/domain/spec-hash.ts";
import { Failure } from "#shared/errors/failure.ts";
import type { QueueRef } from "#shared/jobs/queue-name.ts";
import type { JobRun } from "#shared/jobs/run-job.ts";
import { finalizer } from "#shared/model/names.ts";
import type { Proxy } from "#shared/model/proxy.ts";
import type { ProxyStatus } from "#shared/model/proxy-status.ts";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import { makeInstance, makeProxy } from "#test/fixtures/proxy.ts";
import { now, readyStatus } from "#test/fixtures/situation.ts";
import { type ReconcileDeps, reconcile } from "./reconcile.ts";

const hashKey = Buffer.from("key");
const wrote = { written: true, record: { verdict: undefined, trouble: undefined, leases: 0 } };

/** One run on what `reads` answers, in turn and then the last one again; `told` is what went out. */
function setUp(reads: (Proxy | undefined)[], overrides: Partial<ReconcileDeps> = {}) {
  const lab = new MemoryProvider({ name: "lab", deletePolls: 0 });
  const told: string[] = [];
  const written: ProxyStatus[] = [];
  const waiting = [...reads];
  const tell = (what: string) => () => Promise.resolve(void told.push(what));
  const deps: ReconcileDeps = {
    proxies: {
      get: () => Promise.resolve(waiting.length > 1 ? waiting.shift() : waiting[0]),
      addFinalizer: (read) => Promise.resolve(read),
      removeFinalizer: tell("finalizer removed"),
      patchStatus: (read, status) => {
        written.push(status);
        return Promise.resolve(read);
      },
    },
    fleet: {
      look: () => Promise.resolve({ registered: false, verdict: undefined, trouble: undefined }),
      upsert: () => Promise.resolve(wrote),
      amend: () => Promise.resolve(wrote),
      keepOnly: () => Promise.resolve(0),
      removeByName: (key) => Promise.resolve(told.push(`unregistered ${key}`)),
    },
    events: { record: ({ reason }) => void told.push(reason) },
    secrets: { read: () => Promise.resolve(undefined) },
    installation: { id: "inst234567", hashKey },
    provider: (name) => (name === "lab" ? lab : undefined),
    pendingPollMs: 5_000,
    now: () => now,
    monotonicMs: () => 0,
    handOver: ({ provider = "nobody" }, key, delayMs) => tell(`${key} to ${provider} in ${delayMs}`)(),
    onGone: (key) => void told.push(`forgotten ${key}`),
    ...overrides,
  };
  const run = (queue: QueueRef = { fn: "reconcile", provider: "lab" }) => {
    const fence = { token: 7, check: () => Promise.resolve(), renewRead: () => void told.push("read renewed") };
    const job: JobRun = { key: "crawl/p1", queue, signal: new AbortController().signal, fence, failures: 0 };
    return reconcile(job, deps);
  };
  return { lab, told, written, run };
}

/** The intent is recorded; the next effect is the create. */
const hashed = { placement: undefined, cloudInit: undefined, port: 3128, auth: undefined };
const intended = makeProxy({
  status: {
    instance: makeInstance({ zone: "zone-a", providerID: undefined, specHash: specHash(hashed, hashKey) }),
  },
});

/** A clock that is read to have moved on by so much each time. */
function clock(stepMs: number): () => number {
  let at = 0;
  return () => (at += stepMs);
}

test("a Proxy that is gone leaves the registry and the metrics", async () => {
  const { told, run } = setUp([undefined]);
  expect(await run()).toEqual({});
  expect(told).toEqual(["unregistered crawl/p1", "forgotten crawl/p1"]);
});

test("a key in the wrong queue is passed on and nothing else", async () => {
  const { told, lab, written, run } = setUp([intended]);
  await run({ fn: "reconcile" });
  await run({ fn: "reconcile", provider: "other" });
  expect(told).toEqual(["crawl/p1 to lab in 0", "crawl/p1 to lab in 0"]);
  expect([lab.calls, written]).toEqual([[], []]);
});

test("a key whose provider this process does not know goes to the common queue, not at once", async () => {
  const { told, run } = setUp([intended], { provider: () => undefined });
  await run();
  expect(told).toEqual(["crawl/p1 to nobody in 10000"]);
});

test("an effect that took effect is written and makes the key run again at once", async () => {
  const { told, written, run } = setUp([intended]);
  expect(await run()).toEqual({ requeueAfterMs: 0 });
  expect(written).toEqual([expect.objectContaining({ phase: "Provisioning" })]);
  expect(told).toEqual(["InstanceCreateRequested"]);
});

test("a failure is in the status before the queue is told to retry", async () => {
  const { lab, written, run } = setUp([intended]);
  const failure = new Failure({ class: "Transient", code: "Timeout", message: "no answer" });
  lab.failNext("create", failure);
  await expect(run()).rejects.toBe(failure);
  expect(JSON.stringify(written)).toContain("no answer");
});

test("a missing Secret is in the status before the queue is told to retry", async () => {
  const { written, run } = setUp([makeProxy({ spec: { auth: { secretRef: { name: "login" } } } })]);
  await expect(run()).rejects.toMatchObject({ class: "Transient", code: "SecretMissing" });
  expect(JSON.stringify(written)).toContain("Secret crawl/login does not exist.");
});

const withLogin = { auth: { secretRef: { name: "login" } } };
const running = { status: { ...readyStatus(), instance: makeInstance({ providerID: "memory/zone-a/vm-1" }) } };

test("a Secret that is missing for an instance that runs is said, too", async () => {
  const { written, run } = setUp([makeProxy({ spec: withLogin, ...running })]);
  await expect(run()).rejects.toMatchObject({ class: "Transient", code: "SecretMissing" });
  expect(written[0]?.conditions).toContainEqual(
    expect.objectContaining({ type: "Reconciling", message: "Secret crawl/login does not exist." }),
  );
});

test("a Secret that may not be read does not keep an instance that starts from being read", async () => {
  const refused = new Failure({ class: "Permanent", code: "Forbidden", message: "no" });
  const secrets = { read: () => Promise.reject(refused) };
  const starting = makeProxy({
    spec: withLogin,
    status: { instance: makeInstance({ providerID: "memory/zone-a/vm-1" }) },
  });
  const { lab, run } = setUp([starting], { secrets });
  lab.addForeign("vm-1");
  expect(await run()).toEqual({ requeueAfterMs: expect.any(Number) });
  await expect(setUp([makeProxy({ spec: withLogin, ...running })], { secrets }).run()).rejects.toBe(refused);
});

test("a create that is refused for good is Permanent, a delete never: it is retried like any failure", async () => {
  const refusal = new Failure({ class: "Permanent", code: "ZoneNotConfigured", message: "no such zone" });
  const creating = setUp([intended]);
  creating.lab.failNext("create", refusal);
  await expect(creating.run()).rejects.toMatchObject({ class: "Permanent", code: "ZoneNotConfigured" });
  const metadata = { deletionTimestamp: "2026-12-01T00:30:00Z", finalizers: [finalizer] };
  const deleting = setUp([makeProxy({ metadata, status: intended.status })]);
  deleting.lab.failNext("delete", refusal);
  await expect(deleting.run()).rejects.toMatchObject({ class: "Transient", code: "ZoneNotConfigured" });
});

test("what was read long ago is read again before the provider is asked, and the fence told so first", async () => {
  const { lab, told, run } = setUp([intended], { monotonicMs: clock(3_000) });
  await run();
  expect(told[0]).toBe("read renewed");
  expect(lab.faults.count("create")).toBe(1);
});

test("a Proxy that changed since it was read long ago is not acted on", async () => {
  const changed = makeProxy({ metadata: { resourceVersion: "2" }, status: intended.status });
  const { lab, written, run } = setUp([intended, changed], { monotonicMs: clock(3_000) });
  await expect(run()).rejects.toMatchObject({ class: "Transient", code: "Superseded" });
  expect([lab.calls, written]).toEqual([[], []]);
});

test("a Proxy that only somebody else's finalizer keeps is left alone", async () => {
  const metadata = { deletionTimestamp: "2026-12-01T00:30:00Z", finalizers: ["example.com/other"] };
  const { lab, told, written, run } = setUp([makeProxy({ metadata })]);
  expect(await run()).toEqual({});
  expect([lab.calls, told, written]).toEqual([[], [], []]);
});
