import { expect, test } from "vitest";
import { Failure } from "#shared/errors/failure.ts";
import { startJobRig } from "#test/integration/jobs/rig.ts";
import { createFence } from "./fence.ts";
import { KeyState } from "./key-state.ts";

async function begin() {
  const rig = await startJobRig();
  const state = new KeyState(rig.redis, "reconcile", "ns/a");
  const { token } = await state.begin();
  const clock = { ms: 1_000 };
  const stop = new AbortController();
  const fence = createFence({ state, token, signal: stop.signal, lockMs: 5_000, now: () => clock.ms });
  return { ...rig, state, clock, stop, fence };
}

test("the newest run passes", async () => {
  const { fence } = await begin();
  await fence.check();
});

test("a run is superseded once a newer one has begun, in whatever queue", async () => {
  const { fence, state } = await begin();
  await state.begin();
  await expect(fence.check()).rejects.toMatchObject({ class: "Transient", code: "Superseded" });
});

test("a run is superseded when what it read is older than the lock, until it reads anew", async () => {
  const { fence, clock } = await begin();
  clock.ms += 4_999;
  await fence.check();
  clock.ms += 1;
  await expect(fence.check()).rejects.toMatchObject({ code: "Superseded" });
  fence.renewRead();
  await fence.check();
});

test("time that passes while the fence asks Redis counts", async () => {
  const { fence, clock } = await begin();
  const check = fence.check();
  clock.ms += 5_000;
  await expect(check).rejects.toMatchObject({ code: "Superseded" });
});

test("a run is superseded when Redis was emptied", async () => {
  const { fence, redis } = await begin();
  await redis.flushall();
  await expect(fence.check()).rejects.toMatchObject({ code: "Superseded" });
});

test("while Redis is away the fence does not wait for longer than the lock", async () => {
  const { server, state } = await begin();
  const fence = createFence({ state, token: 1, signal: new AbortController().signal, lockMs: 50, now: () => 0 });
  await server.crash();
  await expect(fence.check()).rejects.toMatchObject({ code: "Superseded" });
});

test("an aborted run does not pass", async () => {
  const { fence, stop } = await begin();
  stop.abort(new Failure({ class: "Transient", code: "ShuttingDown", message: "stops" }));
  await expect(fence.check()).rejects.toMatchObject({ code: "ShuttingDown" });
});

test("tokens grow with every run, also after Redis was emptied", async () => {
  const { state, redis } = await begin();
  const tokens = [];
  for (let run = 0; run < 50; run += 1) tokens.push((await state.begin()).token);
  await redis.flushall();
  tokens.push((await state.begin()).token);
  expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
});
