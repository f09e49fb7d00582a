import { execFile } from "node:child_process";
import { promisify } from "node:util";
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

test("the command of a Redis error is not logged: its arguments hold credentials", () => {
  const lines: string[] = [];
  const root = createLogger({
    levels: parseLogLevels("info"),
    pretty: false,
    destination: { write: (line) => void lines.push(line) },
  });
  const failed = Object.assign(new Error("OOM"), { command: { name: "hset", args: ["password", "sentinel-secret"] } });
  root.error({ err: new Error("could not register", { cause: failed }) }, "failed");
  root.error({ err: failed }, "failed");
  expect(lines).toHaveLength(2);
  expect(lines.join("")).toContain("OOM");
  expect(lines.join("")).not.toContain("sentinel-secret");
});

test("an unknown level is refused, with those there are", () => {
  expect(() => parseLogLevels("info,provider=loud")).toThrow(/"loud".*debug/);
});

test("lines for people have no colours where nobody looks: output that goes to a file or a pipe", async () => {
  const module = new URL("./logger.ts", import.meta.url).href;
  const levels = JSON.stringify({ level: "info", components: {} });
  const script = `const { createLogger } = await import("${module}"); createLogger({ levels: ${levels}, pretty: true }).info("seen")`;
  const { FORCE_COLOR: _, ...env } = process.env; // vitest's own
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], { env });
  expect(stdout).toContain("seen");
  expect(stdout).not.toContain("\u001B");
});
