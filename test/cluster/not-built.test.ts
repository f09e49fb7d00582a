import { test } from "vitest";
import { apiSuites } from "./suites.ts";

/** Run instead of the suites where there are no binaries. */
for (const suite of apiSuites)
  test(`${suite} on a real API server`, ({ skip }) =>
    skip(
      "npm run test:cluster builds a real API server and runs these suites on it; npm test does, too, from then on",
    ));
