import { test } from "vitest";
import { apiSuites, realSuites } from "./suites.ts";

/** Run instead of the suites where there are no binaries. */
for (const suite of [...apiSuites, ...realSuites])
  test(`${suite} on a real API server`, ({ skip }) =>
    skip(
      "npm run test:cluster builds a real API server and runs these suites on it; npm test does, too, from then on",
    ));
