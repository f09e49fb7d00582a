import { defineConfig } from "vitest/config";
import { findBinaries } from "./test/cluster/binaries.ts";
import { apiSuites, realSuites } from "./test/cluster/suites.ts";

const shared = {
  // Node's own loader runs the tests as it runs production: what Node 24 cannot strip fails here too.
  experimental: { viteModuleRunner: false },
  pool: "forks" as const,
  testTimeout: 60_000,
  hookTimeout: 60_000,
  // A second, the default, is no sign of anything on a busy machine.
  expect: { poll: { timeout: 10_000 } },
};

const notBuilt = "test/cluster/not-built.test.ts";

/** Everything, with the small Kubernetes API. */
const small = {
  ...shared,
  name: "small",
  include: ["{shared,functions,infra,test}/**/*.test.ts"],
  exclude: [...realSuites, notBuilt, "test/chaos/**"],
  provide: { controlPlane: null },
};

/** Once more with a real one: whatever talks to an API server. Where that is not built yet, they count as skipped. */
const real = {
  ...shared,
  name: "real",
  ...(findBinaries() === undefined
    ? { include: [notBuilt] }
    : { include: [...apiSuites, ...realSuites], globalSetup: ["./test/cluster/global-setup.ts"] }),
};

export default defineConfig({
  test: {
    projects: [{ test: small }, { test: real }],
    ...(process.platform === "linux" ? { globalSetup: ["./test/no-leaks.ts"] } : {}),
    reporters: ["default", "./test/closing-line.ts"],
    // Most tests wait for processes, not for a core.
    maxWorkers: 3,
  },
});
