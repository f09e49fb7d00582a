import path from "node:path";
import { endBySignal, Foreground, Interrupted } from "#infra/bootstrap/foreground.mjs";

/**
 * `npm run test:cluster`: every suite that talks to an API server, on a real one, which is built when there is
 * none; with `--by-hand` no suite, but that server and a proxy that injects faults, to play with.
 */
const root = path.join(import.meta.dirname, "../..");
const args = process.argv.slice(2);
const byHand = args.includes("--by-hand");
const steps = [
  ["test/cluster/build-control-plane.ts"],
  byHand ? ["test/cluster/by-hand.ts"] : ["node_modules/vitest/vitest.mjs", "run", "--project", "real", ...args],
];

const foreground = new Foreground();
try {
  for (const step of steps) {
    const end = await foreground.run(process.execPath, step, { cwd: root, stdio: "inherit" });
    if (end.signal !== null) endBySignal(end.signal);
    process.exitCode = end.code ?? 1;
    if (end.code !== 0) break;
    foreground.check();
  }
} catch (error) {
  if (!(error instanceof Interrupted)) throw error;
  endBySignal(error.signal);
}
