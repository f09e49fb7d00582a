import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { ApiClient } from "#test/api-client.ts";
import type { ControlPlane } from "./control-plane.ts";
import { startWithDefinitions } from "./start-with-definitions.ts";

let plane: ControlPlane;
let client: ApiClient;

beforeAll(async () => {
  plane = await startWithDefinitions();
  client = new ApiClient(plane);
});
afterAll(async () => {
  await client.close();
  await plane.stop();
});

const configMaps = "/api/v1/namespaces/default/configmaps";
const create = (name: string) => client.call("POST", configMaps, { body: { metadata: { name } } });
const folder = () => path.dirname(plane.adminKubeconfig);
/** The ids of processes that name it in their command line. */
const processesOf = (name: string): string[] =>
  readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && commandOf(pid).includes(name));

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return ""; // it has just ended
  }
}

test("What is stored outlives a kube-apiserver that is killed and started again", async () => {
  expect((await create("lasting")).status).toBe(201);
  await plane.killApiServer();
  await expect(client.call("GET", configMaps)).rejects.toThrow("ECONNREFUSED");
  await plane.restartApiServer();
  expect((await client.call("GET", `${configMaps}/lasting`)).status).toBe(200);
});

test("A paused kube-apiserver answers nothing until it is resumed", async () => {
  plane.pauseApiServer();
  const waiting = create("waited-for");
  const first = await Promise.race([waiting.then(() => "answered"), sleep(300, "silent")]);
  plane.resumeApiServer();
  expect(first).toBe("silent");
  expect((await waiting).status).toBe(201);
});

test("Permissions count: who is nobody in particular may not read", async () => {
  const headers = { "impersonate-user": "somebody" };
  expect((await client.call("GET", configMaps, { headers })).status).toBe(403);
});

test("Its files are for their owner only, and after a stop neither they nor a process are left", async () => {
  const other = await startWithDefinitions();
  const dir = path.dirname(other.adminKubeconfig);
  const { stdout } = await promisify(execFile)("find", [dir, "-maxdepth", "0", "-perm", "0700"]);
  expect(stdout.trim()).toBe(dir);
  expect(processesOf(dir).length).toBeGreaterThanOrEqual(3);
  await other.stop();
  expect(existsSync(dir)).toBe(false);
  expect(processesOf(dir)).toEqual([]);
  expect(existsSync(folder())).toBe(true);
});

test("Nothing is left of it when the process that started it is killed", async () => {
  const source = `
    import { startWithDefinitions } from "#test/cluster/start-with-definitions.ts";
    const { adminKubeconfig } = await startWithDefinitions();
    console.log(JSON.stringify({ adminKubeconfig }));`;
  const root = path.join(import.meta.dirname, "../..");
  const owner = spawn(process.execPath, ["--input-type=module", "--eval", source], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [said] = z.tuple([z.instanceof(Buffer)]).parse(await once(owner.stdout, "data"));
  const dir = path.dirname(
    z.object({ adminKubeconfig: z.string() }).parse(JSON.parse(said.toString())).adminKubeconfig,
  );
  expect(processesOf(dir).length).toBeGreaterThanOrEqual(3);
  owner.kill("SIGKILL");
  await expect.poll(() => processesOf(dir), { timeout: 10_000 }).toEqual([]);
  await expect.poll(() => existsSync(dir), { timeout: 10_000 }).toBe(false);
});
