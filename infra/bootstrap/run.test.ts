import { spawnSync } from "node:child_process";
import { symlink } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isNewEnough } from "./node-version.mjs";
import { ScratchCheckout } from "./scratch-checkout.ts";

const lockfile = (version: string): string =>
  JSON.stringify({
    packages: {
      "": { name: "x" },
      "node_modules/a": { version },
      "node_modules/here": { version: "1.0.0", optional: true, os: [process.platform], cpu: [process.arch] },
      "node_modules/elsewhere": { version: "1.0.0", optional: true, os: ["aix"], cpu: ["ppc64"] },
    },
  });
const installedByNpm = "mkdir -p node_modules && cp package-lock.json node_modules/.package-lock.json";
const script =
  "console.log(JSON.stringify({ args: process.argv.slice(2), path: process.env.PATH, node: process.version }));";

let checkout: ScratchCheckout;
beforeEach(async () => {
  checkout = await ScratchCheckout.make();
  await checkout.write("package-lock.json", lockfile("1.0.0"));
  await checkout.write("script.ts", script);
  await checkout.program("npm", installedByNpm);
});
afterEach(() => checkout.remove());

test("a fresh checkout gets its packages with one npm ci, says so, and runs the script; the second run installs nothing", async () => {
  const first = await checkout.run(["script.ts", "--once", "two words"]);
  expect(first.code).toBe(0);
  expect(first.stderr).toContain("npm ci");
  expect(first.stdout).toContain('"args":["--once","two words"]');
  const second = await checkout.run(["script.ts"]);
  expect(second).toMatchObject({ code: 0, stderr: "" });
  expect(await checkout.calls()).toEqual([expect.stringMatching(/^npm ci --include=dev --include=optional/)]);
});

test("the script finds the checkout's programs first and system programs last on its PATH", async () => {
  const { stdout } = await checkout.run(["script.ts"]);
  expect(stdout).toContain(
    `"path":"${checkout.root}/node_modules/.bin:${path.dirname(process.execPath)}:${checkout.root}/bin:/bin:`,
  );
  expect(stdout).toContain(":/usr/sbin:");
});

test("packages that a user installed with npm count as installed", async () => {
  await checkout.write("node_modules/.package-lock.json", lockfile("1.0.0"));
  await checkout.run(["script.ts"]);
  expect(await checkout.calls()).toEqual([]);
});

test("a changed package-lock.json, a changed node_modules or one of another platform is installed again", async () => {
  await checkout.run(["script.ts"]);
  await checkout.write("package-lock.json", lockfile("2.0.0"));
  await checkout.run(["script.ts"]);
  expect(await checkout.calls()).toHaveLength(2);
  await checkout.write("node_modules/.package-lock.json", lockfile("1.0.0"));
  await checkout.run(["script.ts"]);
  expect(await checkout.calls()).toHaveLength(3);
  await checkout.write(
    "node_modules/.package-lock.json",
    lockfile("2.0.0").replace("node_modules/here", "node_modules/other"),
  );
  await checkout.run(["script.ts"]);
  expect(await checkout.calls()).toHaveLength(4);
});

test("the npm that runs us installs, under its own Node, and not the one on the PATH", async () => {
  const npm = path.join(checkout.root, "npm-cli.js");
  await checkout.write(
    "npm-cli.js",
    `const { cpSync, mkdirSync } = require("node:fs"); mkdirSync("node_modules");
    cpSync("package-lock.json", "node_modules/.package-lock.json"); console.error("own npm");`,
  );
  const end = await checkout.run(["script.ts"], { env: { npm_execpath: npm } });
  expect(end.code).toBe(0);
  expect(end.stderr).toContain("own npm");
  expect(await checkout.calls()).toEqual([]);
});

test("a failing npm ends the run with its message and code 1, and the next run tries again", async () => {
  await checkout.program("npm", "echo 'npm error no network' >&2; exit 7");
  const end = await checkout.run(["script.ts"]);
  expect(end).toMatchObject({ code: 1, stdout: "" });
  expect(end.stderr).toMatch(/no network[^]*npm ci failed/);
  await checkout.program("npm", installedByNpm);
  expect(await checkout.run(["script.ts"])).toMatchObject({ code: 0 });
});

test("of two runs at once one installs and the other waits for it", async () => {
  await checkout.program("npm", `while [ ! -e go ]; do sleep 0.05; done; ${installedByNpm}`);
  const runs = [checkout.start(["script.ts"]), checkout.start(["script.ts"])];
  await expect.poll(() => runs.map((run) => run.output()).join("")).toMatch(/Waiting for process \d+/);
  await checkout.write("go", "");
  for (const run of runs) expect(await run.ended).toMatchObject({ code: 0 });
  expect(await checkout.calls()).toHaveLength(1);
});

test("the run ends as its script ended: with the code, or by the signal", async () => {
  await checkout.write("script.ts", "process.exitCode = 7;");
  expect(await checkout.run(["script.ts"])).toMatchObject({ code: 7 });
  await checkout.write("script.ts", "process.kill(process.pid, 'SIGKILL');");
  expect(await checkout.run(["script.ts"])).toMatchObject({ signal: "SIGKILL" });
});

test.each(["SIGTERM", "SIGHUP", "SIGINT"] as const)(
  "%s is passed on to the script, whose own end decides",
  async (signal) => {
    await checkout.write(
      "script.ts",
      `process.once("${signal}", () => { console.log("bye"); clearInterval(busy); process.exitCode = 4; });
    const busy = setInterval(() => undefined, 1000); console.log("ready");`,
    );
    const run = checkout.start(["script.ts"]);
    await expect.poll(run.output).toContain("ready");
    run.child.kill(signal);
    expect(await run.ended).toMatchObject({ code: 4, stdout: "ready\nbye\n" });
  },
);

test("a wish to stop that is told twice reaches the script once", async () => {
  await checkout.write(
    "script.ts",
    `let count = 0;
    for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => console.log("told", (count += 1)));
    process.stdin.once("end", () => process.exit()).resume();
    console.log("ready");`,
  );
  const run = checkout.start(["script.ts"]);
  await expect.poll(run.output).toContain("ready");
  run.child.kill("SIGTERM");
  run.child.kill("SIGHUP");
  await expect.poll(run.output).toContain("told 1");
  run.child.stdin.end();
  expect(await run.ended).toMatchObject({ code: 0, stdout: "ready\ntold 1\n" });
});

test("a signal during the installation ends npm first and then the run, without running the script", async () => {
  await checkout.program("npm", "trap 'echo npm ended; exit 1' TERM; echo started >&2; while :; do sleep 0.05; done");
  const run = checkout.start(["script.ts"]);
  await expect.poll(run.output).toContain("started");
  run.child.kill("SIGTERM");
  expect(await run.ended).toMatchObject({ signal: "SIGTERM", stdout: "" });
  await checkout.program("npm", installedByNpm);
  expect(await checkout.run(["script.ts"])).toMatchObject({ code: 0 });
});

test("a missing or unknown argument is answered with the usage", async () => {
  for (const args of [[], ["--help"], ["--tools", "squid"]]) {
    const end = await checkout.run(args);
    expect(end.code).toBe(1);
    expect(end.stderr).toContain("usage:");
  }
});

test("Node 24.12 is the oldest that will do", () => {
  expect(["v24.12.0", "v24.22.3", "v26.0.0"].map(isNewEnough)).toEqual([true, true, true]);
  expect(["v24.11.9", "v22.30.0", "v20.20.2", "", "24.12.0"].map(isNewEnough)).toEqual([
    false,
    false,
    false,
    false,
    false,
  ]);
});

// The machine's own Node, where there is one that cannot run the product itself: what the bootstrap is for.
const older = ["/usr/bin/node", "/usr/local/bin/node"].filter((node) => {
  const answer = spawnSync(node, ["--version"], { encoding: "utf8" });
  return answer.status === 0 && !isNewEnough(answer.stdout.trim());
});

test.each(older)(
  "an older Node (%s) hands over to the one that npm installed, and says what is missing without",
  async (node) => {
    const without = await checkout.run(["script.ts"], { node });
    expect(without.code).toBe(1);
    expect(without.stderr).toContain("Node 24.12 or later");
    const folder = `node_modules/node-${process.platform}-${process.arch}/bin`;
    await checkout.write(`${folder}/.keep`, "");
    await symlink(process.execPath, path.join(checkout.root, folder, "node"));
    const end = await checkout.run(["script.ts"], { node });
    expect(end.code).toBe(0);
    expect(end.stdout).toContain(`"node":"${process.version}"`);
  },
);
