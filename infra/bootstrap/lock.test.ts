import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { withLock } from "./lock.mjs";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "lock-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const hooks = { onWait: () => undefined, check: () => undefined };

test("of many processes only one at a time holds the lock, also when a dead one left it behind", async () => {
  const lock = path.join(folder, "lock");
  await mkdir(lock);
  await writeFile(path.join(lock, "999999999.1"), "");
  await writeFile(path.join(folder, "log"), "");
  const program = `
    import { appendFileSync } from "node:fs";
    import { withLock } from ${JSON.stringify(path.join(import.meta.dirname, "lock.mjs"))};
    for (let i = 0; i < 5; i += 1) await withLock(${JSON.stringify(lock)}, { onWait() {}, check() {} }, async () => {
      appendFileSync(${JSON.stringify(path.join(folder, "log"))}, "in ");
      await new Promise(setImmediate);
      appendFileSync(${JSON.stringify(path.join(folder, "log"))}, "out ");
    });`;
  const children = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: "inherit" }),
  );
  for (const [code] of await Promise.all(children.map((child) => once(child, "exit")))) expect(code).toBe(0);
  expect(await readFile(path.join(folder, "log"), "utf8")).toBe("in out ".repeat(20));
  expect(existsSync(lock)).toBe(false);
});

test("the lock is free again after work that failed", async () => {
  const lock = path.join(folder, "deeper/lock");
  await expect(withLock(lock, hooks, () => Promise.reject(new Error("work failed")))).rejects.toThrow("work failed");
  expect(await withLock(lock, hooks, () => Promise.resolve("done"))).toBe("done");
});

test("a process that took over the number of a dead owner does not count as the owner", async () => {
  const lock = path.join(folder, "lock");
  await mkdir(lock);
  await writeFile(path.join(lock, `${process.pid}.1`), "");
  expect(await withLock(lock, hooks, () => Promise.resolve("done"))).toBe("done");
});

test("whoever waits is told for whom, and can give up", async () => {
  const lock = path.join(folder, "lock");
  let waitedFor = 0;
  const impatient = {
    onWait: (pid: number) => void (waitedFor = pid),
    check: () => {
      if (waitedFor > 0) throw new Error("gave up");
    },
  };
  await withLock(lock, hooks, async () => {
    await expect(withLock(lock, impatient, () => Promise.resolve())).rejects.toThrow("gave up");
  });
  expect(waitedFor).toBe(process.pid);
});
