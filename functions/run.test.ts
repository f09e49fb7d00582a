import { spawnSync } from "node:child_process";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.join(import.meta.dirname, "..");

function run(args: string[], env: Record<string, string> = {}) {
  const child = spawnSync(process.execPath, args, {
    cwd: root,
    env: { PATH: process.env.PATH ?? "", ...env },
    encoding: "utf8",
  });
  return { code: child.status, out: child.stdout, err: child.stderr };
}

test("--help and --version answer and end well", () => {
  expect(run(["functions/run.ts", "--help"])).toMatchObject({ code: 0, out: expect.stringContaining("lease-api") });
  expect(run(["functions/run.ts", "--version"])).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
  });
});

test.each([
  ["no role", [], "expected one role"],
  ["an unknown role", ["other"], "expected one role"],
  ["an unknown function", ["functions", "--only", "reconcile,other"], "--only: unknown function other"],
])("%s is refused with what there is", (_name, args, message) => {
  expect(run(["functions/run.ts", ...args])).toMatchObject({ code: 2, err: expect.stringContaining(message) });
});

test("a wrong setting ends the start and is named, before anything is dialled", () => {
  const { code, err } = run(["functions/run.ts", "all"], { LOG_LEVEL: "loud", ADMIN_PORT: "x" });
  expect(code).toBe(1);
  expect(err).toMatch(
    /LOG_LEVEL: unknown log level[\s\S]*ADMIN_PORT: expected a whole number[\s\S]*REDIS_URL: is required/,
  );
});

test("all that is wrong with the settings of a role is said at once, each with what to do", () => {
  const env = { REDIS_URL: "redis://:hunter2@host:port", RESYNC_SECONDS: "1", LEASE_API_PORT: "x", ADMIN_PORT: "-1" };
  const { code, err } = run(["functions/run.ts", "all"], env);
  expect(code).toBe(1);
  const lines = err.split("\n").filter((line) => line.startsWith("  "));
  expect(lines.map((line) => line.trim().split(":", 1)[0])).toEqual([
    "ADMIN_PORT",
    "REDIS_URL",
    "POD_NAMESPACE",
    "PROVIDERS_FILE",
    "RESYNC_SECONDS",
    "LEASE_API_PORT",
    "LEASE_TOKENS_FILE",
  ]);
  expect(err).toMatch(/REDIS_URL: .*expected redis:/);
  expect(err).toMatch(/LEASE_TOKENS_FILE: is required and not set: .*LEASE_API_INSECURE_NO_AUTH=true/);
  expect(err).not.toContain("hunter2");
});

test("a role is asked only for the settings that it reads", () => {
  const names = (...args: string[]): (string | undefined)[] =>
    run(["functions/run.ts", ...args])
      .err.split("\n")
      .filter((line) => line.startsWith("  "))
      .map((line) => line.trim().split(":", 1)[0]);
  expect(names("functions", "--only", "lease")).toEqual(["REDIS_URL"]);
  expect(names("functions", "--only", "health-probe")).toEqual(["REDIS_URL", "PROVIDERS_FILE"]);
  expect(names("lease-api")).toEqual(["REDIS_URL", "LEASE_TOKENS_FILE"]);
});

/** How many modules of the Kubernetes client a role imports, as Node itself resolves them. */
function kubernetesModules(role: string): number {
  const script = `
    import { registerHooks } from "node:module";
    const seen = new Set();
    registerHooks({ resolve(specifier, context, next) { const found = next(specifier, context); seen.add(found.url); return found; } });
    await import("./functions/roles/${role}.ts");
    console.log([...seen].filter((url) => url.includes("@kubernetes/client-node")).length);`;
  return Number(run(["--input-type=module", "-e", script]).out);
}

test("the lease API never loads the Kubernetes client, which costs 90 MB", () => {
  expect(kubernetesModules("watcher")).toBeGreaterThan(0); // the scan sees it where it is
  expect(kubernetesModules("lease-api")).toBe(0);
});
