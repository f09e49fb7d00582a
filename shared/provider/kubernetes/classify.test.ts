import { expect, test } from "vitest";
import { Failure, type FailureInit } from "#shared/errors/failure.ts";
import { type CallTarget, classify } from "./classify.ts";

type Verdict = Pick<Failure, "class" | "code" | "scope">;

/** What the cluster client says, in which call, and what it means here. */
const table: [string, Pick<FailureInit, "class" | "code">, CallTarget["op"], Verdict][] = [
  [
    "a Pod that is gone",
    { class: "NotFound", code: "NotFound" },
    "get",
    { class: "NotFound", code: "NotFound", scope: "instance" },
  ],
  [
    "a Pod that vanished after AlreadyExists",
    { class: "NotFound", code: "NotFound" },
    "create",
    { class: "Transient", code: "Vanished", scope: "instance" },
  ],
  [
    "a 404 while listing",
    { class: "NotFound", code: "NotFound" },
    "list",
    { class: "Transient", code: "Vanished", scope: "instance" },
  ],
  [
    "a quota",
    { class: "QuotaExceeded", code: "QuotaExceeded" },
    "create",
    { class: "QuotaExceeded", code: "QuotaExceeded", scope: "instance" },
  ],
  [
    "missing rights",
    { class: "Permanent", code: "Forbidden" },
    "create",
    { class: "Permanent", code: "Forbidden", scope: "instance" },
  ],
  [
    "a namespace that ends",
    { class: "Transient", code: "NamespaceTerminating" },
    "create",
    { class: "Transient", code: "NamespaceTerminating", scope: "instance" },
  ],
  [
    "refused credentials",
    { class: "Transient", code: "Unauthorized" },
    "get",
    { class: "Transient", code: "Unauthorized", scope: "provider" },
  ],
  [
    "a server out of reach",
    { class: "Transient", code: "Unreachable" },
    "get",
    { class: "Transient", code: "Unreachable", scope: "provider" },
  ],
];

test.each(table)("%s: %j in %s", (_, said, op, expected) => {
  const failure = new Failure({ ...said, message: "m", retryAfterMs: 7, ambiguous: true, op: "POST /api" });
  const judged = classify(failure, { op, provider: "lab", providerID: "ns/n" });
  expect(judged).toMatchObject({ ...expected, op, provider: "lab", providerID: "ns/n", message: "m" });
  expect(judged).toMatchObject({ retryAfterMs: 7, ambiguous: true, cause: failure });
});

test("whatever is not classified is Transient", () => {
  expect(classify(new TypeError("?"), { op: "get", provider: "lab" })).toMatchObject({ class: "Transient" });
});
