import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startBoundProcess } from "./bound-process.ts";

async function setUp() {
  const dir = await mkdtemp(path.join(tmpdir(), "bound-process-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  const logFile = path.join(dir, "log");
  const life = async (word: string, append: boolean): Promise<string> => {
    const child = await startBoundProcess({ command: "sh", args: ["-c", `echo ${word}; exit 3`], logFile, append });
    return (await child.ended).reason;
  };
  return { life, log: () => readFile(logFile, "utf8") };
}

test("a log that is appended to keeps earlier lives, and the reason of an end quotes the last one alone", async () => {
  const { life, log } = await setUp();
  await life("first", true);
  expect(await life("second", true)).toBe("exited with code 3\nsecond");
  expect(await log()).toBe("first\nsecond\n");
});

test("any other log tells of the last life only", async () => {
  const { life, log } = await setUp();
  await life("first", false);
  await life("second", false);
  expect(await log()).toBe("second\n");
});
