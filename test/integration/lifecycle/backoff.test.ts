import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { Failure } from "#shared/errors/failure.ts";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import { startWorld } from "./world.ts";

test("A Proxy whose create fails runs at most 5 times in its first 10 s", async () => {
  const lab = new MemoryProvider({ name: "lab" });
  // Each failure reads differently, so each one writes the status: that write must not cause the next run.
  lab.backend.onStep = ({ number }) => {
    throw new Failure({ class: "Transient", code: "Unavailable", message: `request ${number} was lost` });
  };
  const { user, reports } = await startWorld({ providers: [lab], backoff: "real" });
  await user.apply("p1");
  await sleep(10_000); // the time that the promise is about
  expect(reports.length).toBeLessThanOrEqual(5);
  expect(reports.filter(({ kind }) => kind === "backoff").length).toBeGreaterThanOrEqual(2);
});
