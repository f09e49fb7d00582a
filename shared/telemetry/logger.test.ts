import { expect, test } from "vitest";
import { componentLogger, createLogger, parseLogLevels } from "./logger.ts";

test("a component has the level that was set for it, the rest the general one", () => {
  const lines: string[] = [];
  const levels = parseLogLevels("warn,provider=debug");
  const root = createLogger({ levels, pretty: false, destination: { write: (line) => void lines.push(line) } });
  componentLogger(root, "provider", levels).debug("seen");
  componentLogger(root, "watcher", levels).info("not seen");
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    { level: "debug", time: expect.any(String), component: "provider", msg: "seen" },
  ]);
});

test("an unknown level is refused, with those there are", () => {
  expect(() => parseLogLevels("info,provider=loud")).toThrow(/"loud".*debug/);
});
