import type { Reporter, TestModule } from "vitest/node";

/** Says why tests were skipped, and ends every run with `N passed, N failed, N skipped`: the line that CI and .ci/run read. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandledErrors: ReadonlyArray<unknown>): void {
    const count = { passed: 0, failed: 0, skipped: 0 };
    const reasons = new Set<string>();
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const result = test.result();
        const { state } = result;
        if (result.state === "skipped" && result.note !== undefined) reasons.add(result.note);
        if (state === "pending") count.failed += 1;
        else count[state] += 1;
      }
      // A file that could not be loaded has no tests to count, yet must not pass for green.
      if (module.errors().length > 0) count.failed += 1;
    }
    if (unhandledErrors.length > 0) count.failed += 1;
    for (const reason of reasons) console.log(`\nSkipped: ${reason}`);
    console.log(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
  }
}
