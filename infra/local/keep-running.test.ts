import { expect, test } from "vitest";
import { keepRunning, type Running } from "./keep-running.ts";

/** A process that ends as soon as it is told to, under a clock that the test moves. */
function setUp(options: {
  fails?: (attempt: number) => boolean;
  livesMs?: (attempt: number) => number;
  lives: number;
}) {
  const { fails = () => false, livesMs = () => 0, lives } = options;
  const pauses: number[] = [];
  const lines: string[] = [];
  let time = 0;
  let attempt = 0;
  const start = (): Promise<Running> => {
    attempt += 1;
    if (fails(attempt)) return Promise.reject(new Error("no room"));
    const end = Promise.withResolvers<string>();
    if (attempt <= lives) {
      const lived = livesMs(attempt);
      queueMicrotask(() => {
        time += lived;
        end.resolve("exited with code 1");
      });
    }
    return Promise.resolve({
      pid: attempt,
      ended: end.promise,
      stop: () => {
        end.resolve("stopped");
        return Promise.resolve();
      },
    });
  };
  const clock = {
    now: () => time,
    pause: (ms: number) => {
      pauses.push(ms);
      return Promise.resolve();
    },
  };
  return {
    pauses,
    lines,
    kept: () => keepRunning("It", start, (line) => lines.push(line), clock),
    attempts: () => attempt,
  };
}

test("a process that dies in a loop is started again after pauses that grow to a limit, and each line says so", async () => {
  const { pauses, lines, kept, attempts } = setUp({ lives: 7 });
  const running = await kept();
  await expect.poll(attempts).toBe(8);
  expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  expect(lines[0]).toBe("It has ended: exited with code 1\nIt is started again in 1 s");
  expect(lines.at(-2)).toBe("It has ended: exited with code 1\nIt is started again in 30 s (7 times in a row)");
  await running.stop();
});

test("one that ran for a while is started again soon", async () => {
  const { pauses, kept, attempts } = setUp({ lives: 4, livesMs: (attempt) => (attempt === 3 ? 60_000 : 0) });
  const running = await kept();
  await expect.poll(attempts).toBe(5);
  expect(pauses).toEqual([1_000, 2_000, 1_000, 2_000]);
  await running.stop();
});

test("one that cannot be started is tried again with the same pauses, and its end is told once", async () => {
  const { pauses, lines, kept, attempts } = setUp({ lives: 1, fails: (attempt) => attempt === 2 || attempt === 3 });
  const running = await kept();
  await expect.poll(attempts).toBe(4);
  expect(pauses).toEqual([1_000, 2_000, 4_000]);
  expect(lines.filter((line) => line.includes("has ended"))).toHaveLength(1);
  expect(lines[1]).toBe("It could not be started again: no room\nIt is started again in 2 s (2 times in a row)");
  await running.stop();
});
