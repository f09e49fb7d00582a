import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["{shared,functions,infra,test}/**/*.test.ts"],
    exclude: ["test/cluster/**", "test/chaos/**"],
    ...(process.platform === "linux" ? { globalSetup: ["./test/no-leaks.ts"] } : {}),
    reporters: ["default", "./test/closing-line.ts"],
    // Node's own loader runs the tests as it runs production: what Node 24 cannot strip fails here too.
    experimental: { viteModuleRunner: false },
    pool: "forks",
    // Most tests wait for processes, not for a core.
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
