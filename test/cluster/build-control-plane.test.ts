import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { builtFolder } from "./binaries.ts";
import { FakeGo, type GoMood } from "./fake-go.ts";

let dir: string;
let go: FakeGo;
const running: ChildProcess[] = [];

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "build-control-plane-"));
  go = await FakeGo.make(dir);
});
afterEach(async () => {
  for (const child of running.splice(0)) child.kill("SIGKILL");
  await rm(dir, { recursive: true, maxRetries: 5 });
});

const cache = () => path.join(dir, "cache");
const target = () => builtFolder({ XDG_CACHE_HOME: cache() });
const left = async () => (await readdir(path.dirname(target()))).filter((name) => name !== path.basename(target()));
const builds = async () => (await go.calls()).filter((call) => call.startsWith("build"));

function start(mood: GoMood = "good", more: Record<string, string> = {}) {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, "build-control-plane.ts")], {
    env: { PATH: go.folder, XDG_CACHE_HOME: cache(), FAKE_GO: mood, ...more },
    stdio: ["ignore", "ignore", "pipe"],
  });
  running.push(child);
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  const ended = once(child, "close").then(() => ({ code: child.exitCode, signal: child.signalCode, said }));
  return { child, ended, said: () => said };
}

test("Both are built once, into the cache, and found there the next time", async () => {
  const first = await start().ended;
  expect(first, first.said).toMatchObject({ code: 0 });
  expect(first.said).toContain(`into ${target()}`);
  expect((await readdir(target())).sort()).toEqual(["etcd", "kube-apiserver"]);
  expect(await left()).toEqual([]);
  expect(await start().ended).toEqual({ code: 0, signal: null, said: "" });
  expect(await builds()).toEqual(["build go.etcd.io/etcd/server/v3", "build k8s.io/kubernetes/cmd/kube-apiserver"]);
});

test("Two runs at the same time build once", async () => {
  const ends = await Promise.all([start().ended, start().ended, start().ended]);
  expect(ends.map(({ code }) => code)).toEqual([0, 0, 0]);
  expect(await builds()).toHaveLength(2);
});

test("A builder that is killed leaves nothing that counts as built, and does not block the next one", async () => {
  const killed = start("hangs");
  await expect.poll(builds).toHaveLength(1);
  killed.child.kill("SIGKILL");
  await killed.ended;
  expect(existsSync(target())).toBe(false);
  expect(await start().ended).toMatchObject({ code: 0 });
  expect(await left()).toEqual([]);
});

test("A stopped builder takes all of Go's processes with it, and ends by the signal", async () => {
  const stopped = start("hangs");
  await expect.poll(builds).toHaveLength(1);
  await expect.poll(compilers).toHaveLength(1);
  stopped.child.kill("SIGTERM");
  expect(await stopped.ended).toMatchObject({ signal: "SIGTERM" });
  expect(await compilers()).toEqual([]);
  expect(await left()).toEqual([]);
});

test("What Go said last is shown when it fails, and nothing is left", async () => {
  const { code, said } = await start("fails").ended;
  expect(code).toBe(1);
  expect(said).toContain("go build: exited with code 1\nld: out of memory");
  expect(await left()).toEqual([]);
});

test("Without Go the remedy is said", async () => {
  await rm(path.join(go.folder, "go"));
  const without = await start().ended;
  expect(without.code).toBe(1);
  expect(without.said).toContain("install Go 1.26 or later (https://go.dev/dl)");
  expect(without.said).toContain("set KUBEBUILDER_ASSETS");
});

test("A Go that is too old is named, with the one that is needed", async () => {
  const { code, said } = await start("old").ended;
  expect(code).toBe(1);
  expect(said).toContain("needs Go 1.26.0 or later, and this is go version go1.20");
});

test("KUBEBUILDER_ASSETS comes first, and is refused where it holds not both", async () => {
  expect(await start().ended).toMatchObject({ code: 0 });
  const elsewhere = { XDG_CACHE_HOME: path.join(dir, "empty") };
  expect(await start("fails", { ...elsewhere, KUBEBUILDER_ASSETS: target() }).ended).toMatchObject({
    code: 0,
    said: "",
  });
  const wrong = await start("good", { KUBEBUILDER_ASSETS: dir }).ended;
  expect(wrong.code).toBe(1);
  expect(wrong.said).toContain(`KUBEBUILDER_ASSETS is ${dir}, which does not hold etcd and kube-apiserver`);
});

/** Processes that the fake go has started in this test. */
async function compilers(): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const commands = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
  return commands.filter((command) => command.includes(`compile-of-${go.folder}`));
}
