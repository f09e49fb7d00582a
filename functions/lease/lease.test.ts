import { expect, test } from "vitest";
import { createLeaseFunction } from "./lease.ts";

const log = { debug: () => undefined };
const run = (key = "reap") => ({ key, signal: new AbortController().signal });

/** A store with so many expired leases. */
function storeWith(expired: number) {
  const asked: number[] = [];
  let left = expired;
  const reap = async (limit: number): Promise<number> => {
    asked.push(limit);
    const freed = Math.min(limit, left);
    left -= freed;
    return freed;
  };
  return { asked, left: () => left, reap };
}

test("reaping goes on in small chunks until no lease is due", async () => {
  const store = storeWith(250);
  await createLeaseFunction({ store, log })(run());
  expect(store.left()).toBe(0);
  expect(store.asked).toEqual([100, 100, 100]);
});

test("reaping stops when the run is aborted", async () => {
  const store = storeWith(250);
  const aborted = new AbortController();
  const reap = async (limit: number) => {
    aborted.abort();
    return store.reap(limit);
  };
  await createLeaseFunction({ store: { reap }, log })({ key: "reap", signal: aborted.signal });
  expect(store.left()).toBe(150);
});

test("a job that nobody knows is an error", async () => {
  await expect(createLeaseFunction({ store: storeWith(0), log })(run("other"))).rejects.toThrow("no job other");
});
