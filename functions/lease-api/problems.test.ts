import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { Problem, problems, problemTypePrefix } from "./problems.ts";

test("the documentation lists every problem with its status, and no other", async () => {
  const docs = await readFile(new URL("../../docs/lease-api.md", import.meta.url), "utf8");
  const rows = [...docs.matchAll(/^\| `([a-z-]+)` \| (\d{3}) \|/gm)].map(([, code = "", status]) => [
    code,
    Number(status),
  ]);
  expect(Object.fromEntries(rows)).toEqual(
    Object.fromEntries(Object.entries(problems).map(([code, { status }]) => [code, status])),
  );
  expect(docs).toContain(problemTypePrefix);
});

test("a problem's body says what happened in words and in a stable type", () => {
  const problem = new Problem("nothing-free", { detail: "Later.", extensions: { counts: { total: 1 } } });
  expect(JSON.parse(problem.toBody())).toEqual({
    type: "urn:egress-proxies:problem:nothing-free",
    title: "No matching proxy is free now",
    status: 503,
    detail: "Later.",
    counts: { total: 1 },
  });
});
