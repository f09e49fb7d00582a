import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { Failure } from "#shared/errors/failure.ts";
import { MemoryProvider } from "#test/fakes/memory-provider.ts";
import { startWorld } from "./world.ts";

test("A Proxy whose create fails runs at most 5 times in its first 10 s", async () => {
  const lab = new MemoryProvider({ name: "lab" });
  lab.backend.onStep = () => {
    throw new Failure({ class: "Transient", code: "Unavailable", message: "the backend is away" });
  };
  const { user, reports } = await startWorld({ providers: [lab], backoff: "real" });
  await user.apply("p1");
  await sleep(10_000); // the time that the promise is about
  expect(reports.length).toBeLessThanOrEqual(5);
  expect(reports.filter(({ kind }) => kind === "backoff").length).toBeGreaterThanOrEqual(2);
});
