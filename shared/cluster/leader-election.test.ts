import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { Failure } from "#shared/errors/failure.ts";
import type { ClusterCall } from "./deadline.ts";
import { type ElectionOptions, takePart } from "./leader-election.ts";
import type { LeaseRecord } from "./leader-lease.ts";
import type { Leadership } from "./leadership.ts";

const timing = { durationMs: 400, validMs: 250, everyMs: 20, requestMs: 50 };
const patience = { timeout: 20_000, interval: 5 };

/** A Lease object with the API server's rule: a write must know what it writes over. */
class LeaseObject {
  record: LeaseRecord | undefined;
  #version = 0;

  read(): LeaseRecord | undefined {
    return this.record;
  }

  write({ holder, durationMs }: { holder: string; durationMs: number }, before: LeaseRecord | undefined): LeaseRecord {
    if (before?.resourceVersion !== this.record?.resourceVersion)
      throw new Failure({ class: "Transient", code: "Conflict", message: "it was written meanwhile" });
    this.#version += 1;
    this.record = { holder, durationMs, transitions: 0, resourceVersion: String(this.#version) };
    return this.record;
  }
}

/** Who leads at this moment, as each of them would say itself. */
class Office {
  readonly leading = new Map<string, Leadership>();
  readonly terms: string[] = [];

  now(): string[] {
    return [...this.leading].filter(([, leadership]) => isLeading(leadership)).map(([name]) => name);
  }
}

function isLeading(leadership: Leadership): boolean {
  try {
    leadership.check();
    return true;
  } catch {
    return false;
  }
}

interface Candidate {
  stop: () => Promise<void>;
  /** From now on the API server is out of its reach: no request of it comes to an end. */
  cutOff: () => void;
  failures: string[];
}

/** A process that takes part until the test ends. */
function candidate(
  name: string,
  object: LeaseObject,
  office: Office,
  options: Partial<ElectionOptions> = {},
): Candidate {
  const stop = new AbortController();
  const failures: string[] = [];
  let isCutOff = false;
  const reach = async <T>({ signal, deadlineMs = 0 }: ClusterCall, work: () => T): Promise<T> => {
    if (!isCutOff) return work();
    await sleep(deadlineMs, undefined, { signal });
    throw new Failure({ class: "Transient", code: "Timeout", message: "no answer" });
  };
  const ended = takePart({
    lease: {
      read: (call) => reach(call, () => object.read()),
      write: (record, before, call) => reach(call, () => object.write(record, before)),
    },
    identity: name,
    signal: stop.signal,
    timing,
    onHolder: () => undefined,
    onFailure: ({ code }) => failures.push(code),
    lead: async (leadership) => {
      office.leading.set(name, leadership);
      office.terms.push(name);
      await sleep(600_000, undefined, { signal: leadership.signal }).catch(() => undefined);
      office.leading.delete(name);
    },
    ...options,
  });
  const end = async (): Promise<void> => {
    stop.abort(new Error("the test stops it"));
    await ended;
  };
  onTestFinished(end);
  return { stop: end, cutOff: () => (isCutOff = true), failures };
}

async function untilLeads(office: Office, name: string): Promise<void> {
  await vi.waitFor(() => expect(office.now()).toEqual([name]), patience);
}

test("one leads; when it stops it gives the Lease back, and the other one leads without waiting for its end", async () => {
  const object = new LeaseObject();
  const office = new Office();
  const a = candidate("a", object, office, { timing: { ...timing, durationMs: 3_600_000 } });
  await untilLeads(office, "a");
  candidate("b", object, office);
  await a.stop();
  expect(office.leading.has("a")).toBe(false);
  await untilLeads(office, "b");
});

test("what the leader runs ends before the Lease is given back", async () => {
  const object = new LeaseObject();
  const office = new Office();
  const release = Promise.withResolvers<void>();
  let working = false;
  const a = candidate("a", object, office, {
    lead: async () => {
      working = true;
      await release.promise;
    },
  });
  await expect.poll(() => working, patience).toBe(true);
  const stopped = a.stop();
  expect(object.record?.holder).toBe("a");
  release.resolve();
  await stopped;
  expect(object.record?.holder).toBe("");
});

test("a leader that the API server cannot be reached from ends by itself before another one begins", async () => {
  const object = new LeaseObject();
  const office = new Office();
  const a = candidate("a", object, office);
  await untilLeads(office, "a");
  candidate("b", object, office, {
    lead: async (leadership) => {
      expect(office.now()).toEqual([]);
      office.leading.set("b", leadership);
      await sleep(600_000, undefined, { signal: leadership.signal }).catch(() => undefined);
    },
  });
  a.cutOff();
  await untilLeads(office, "b");
});

test("a leader that stood still knows when it wakes that it leads no longer, before any timer fires", async () => {
  const object = new LeaseObject();
  const office = new Office();
  let ahead = 0;
  candidate("a", object, office, { monotonicMs: () => performance.now() + ahead });
  await untilLeads(office, "a");
  const leadership = office.leading.get("a");
  ahead = timing.validMs + 1;
  expect(() => leadership?.check()).toThrow("the Lease was not renewed in time");
  expect(leadership?.signal.aborted).toBe(true);
});

test("a leader whose Lease somebody else wrote ends at once", async () => {
  const object = new LeaseObject();
  const office = new Office();
  const a = candidate("a", object, office);
  await untilLeads(office, "a");
  object.write({ holder: "b", durationMs: 3_600_000 }, object.record);
  await vi.waitFor(() => expect(office.leading.size).toBe(0), patience);
  expect(a.failures).toContain("Conflict");
  expect(object.record?.holder).toBe("b");
});

test("one that was killed and started again under its name leads at once, another one only when its word is over", async () => {
  const object = new LeaseObject();
  object.write({ holder: "a", durationMs: 3_600_000 }, undefined);
  const office = new Office();
  candidate("b", object, office);
  candidate("a", object, office);
  await untilLeads(office, "a");
  expect(office.terms).toEqual(["a"]);
});

test("a holder that renews in time is waited for, however long", async () => {
  const object = new LeaseObject();
  object.write({ holder: "elsewhere", durationMs: 100 }, undefined);
  const office = new Office();
  candidate("b", object, office);
  for (let renewals = 0; renewals < 20; renewals += 1) {
    object.write({ holder: "elsewhere", durationMs: 100 }, object.record);
    await sleep(20);
  }
  expect(office.terms).toEqual([]);
  await untilLeads(office, "b");
});

test("an answer that was lost does not lose the Lease", async () => {
  const object = new LeaseObject();
  const office = new Office();
  const lost = new Failure({ class: "Transient", code: "Timeout", message: "no answer", ambiguous: true });
  let calls = 0;
  candidate("a", object, office, {
    lease: {
      read: async () => object.read(),
      write: async (record, before) => {
        const written = object.write(record, before);
        calls += 1;
        if (calls % 2 === 1) throw lost; // the first one, too
        return written;
      },
    },
  });
  await untilLeads(office, "a");
  await expect.poll(() => calls, patience).toBeGreaterThan(6);
  expect(office.terms).toEqual(["a"]);
});

test("work that fails gives the Lease up, and is begun again", async () => {
  const object = new LeaseObject();
  let begun = 0;
  const a = candidate("a", object, new Office(), {
    lead: async () => {
      begun += 1;
      throw new Error("it does not work");
    },
  });
  await expect.poll(() => begun, patience).toBeGreaterThan(1);
  expect(a.failures.length).toBeGreaterThan(0);
});

test("never do two lead at once, whoever is stopped or cut off", async () => {
  const object = new LeaseObject();
  const office = new Office();
  const short = { durationMs: 60, validMs: 30, everyMs: 5, requestMs: 10 };
  const most = { atOnce: 0 };
  const watch = setInterval(() => (most.atOnce = Math.max(most.atOnce, office.now().length)), 1);
  onTestFinished(() => clearInterval(watch));
  for (let round = 0; round < 12; round += 1) {
    const [a, b] = [
      candidate(`a${round}`, object, office, { timing: short }),
      candidate(`b${round}`, object, office, { timing: short }),
    ];
    await vi.waitFor(() => expect(office.now()).toHaveLength(1), patience);
    const [leader] = office.now();
    const [first, second] = leader?.startsWith("a") ? [a, b] : [b, a];
    first.cutOff();
    await vi.waitFor(() => expect(office.now().filter((name) => name !== leader)).toHaveLength(1), patience);
    await Promise.all([first.stop(), second.stop()]);
  }
  expect(most.atOnce).toBe(1);
});
