import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { endEarlierLife, notePid } from "./earlier-life.ts";
import { PodFiles } from "./pod-files.ts";
import { serviceNameOf } from "./squid-command.ts";

let runtimeFolder: string;
beforeEach(async () => {
  runtimeFolder = await mkdtemp(path.join(tmpdir(), "earlier-"));
});
afterEach(() => rm(runtimeFolder, { recursive: true, force: true }));

/** A program that stands for the Squid of a Pod: its arguments bear the Pod's name. */
async function leaveBehind(uid: string, name: string) {
  const child = spawn("sh", ["-c", "sleep 60 & wait", name], { stdio: "ignore", detached: true });
  const exit = once(child, "exit");
  await once(child, "spawn");
  const files = new PodFiles({ runtimeFolder, uid, user: undefined });
  await mkdir(files.folder);
  await notePid(files, child.pid ?? 0);
  const kill = async (): Promise<void> => {
    process.kill(-(child.pid ?? 0), "SIGKILL"); // with its sleep
    await exit;
  };
  return { child, files, exit, kill };
}

test("a Squid that outlived its agent is killed, and its files and shared memory are removed", async () => {
  const squid = await leaveBehind("uid-1", serviceNameOf("uid-1"));
  const shared = `/dev/shm/${serviceNameOf("uid-1")}-cf__metadata.shm`;
  await writeFile(shared, "");
  await endEarlierLife(runtimeFolder);
  await squid.exit;
  expect(squid.child.signalCode).toBe("SIGKILL");
  expect(existsSync(shared)).toBe(false);
  expect(await readdir(runtimeFolder)).toEqual([]);
  await squid.kill();
});

test("another process that got the same number is left alone", async () => {
  const other = await leaveBehind("uid-1", "something-else");
  const later = await leaveBehind("uid-2", serviceNameOf("uid-2"));
  await writeFile(later.files.pidFile, `${later.child.pid} 1`);
  await endEarlierLife(runtimeFolder);
  expect([other.child.signalCode, later.child.signalCode]).toEqual([null, null]);
  await other.kill();
  await later.kill();
});
