import { ApiException } from "@kubernetes/client-node";
import { expect, test } from "vitest";
import { Failure } from "#shared/errors/failure.ts";
import { classifyApiError } from "./failure.ts";

/** Bodies as kube-apiserver sends them: refusals.test.ts here and in test/cluster get them from one. */
const status = (code: number, reason: string, message: string, details?: object) =>
  `${JSON.stringify({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, ...(details ? { details } : {}), code })}\n`;

const proxyDetails = { name: "a", group: "crawl.example.com", kind: "proxies" };
const terminating = {
  name: "p",
  kind: "pods",
  causes: [
    { reason: "NamespaceTerminating", message: "namespace crawl is being terminated", field: "metadata.namespace" },
  ],
};
const quota = 'pods "p" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=3, limited: pods=3';
const rbac =
  'proxies.crawl.example.com is forbidden: User "system:serviceaccount:crawl:functions" cannot list resource "proxies" in API group "crawl.example.com" at the cluster scope';

interface Row {
  what: string;
  code: number;
  body?: string;
  headers?: Record<string, string>;
  expected: { class: string; code: string; retryAfterMs?: number; ambiguous?: boolean };
}

const rows: Row[] = [
  {
    what: "an object that does not exist",
    code: 404,
    body: status(404, "NotFound", 'proxies.crawl.example.com "a" not found', proxyDetails),
    expected: { class: "NotFound", code: "NotFound" },
  },
  {
    what: "a path that does not exist, e.g. a missing CRD",
    code: 404,
    body: "404 page not found\n",
    expected: { class: "Transient", code: "NotServed" },
  },
  {
    what: "a Status 404 that names no object",
    code: 404,
    body: status(404, "NotFound", "the server could not find the requested resource", {}),
    expected: { class: "Transient", code: "NotServed" },
  },
  {
    what: "a 404 page of a proxy on the way",
    code: 404,
    body: "<html><body>nginx</body></html>",
    expected: { class: "Transient", code: "NotServed" },
  },
  { what: "a 404 with an empty body", code: 404, expected: { class: "Transient", code: "NotServed" } },
  {
    what: "a namespace that does not exist",
    code: 404,
    body: status(404, "NotFound", 'namespaces "crawl" not found', { name: "crawl", kind: "namespaces" }),
    expected: { class: "Transient", code: "NamespaceNotFound" },
  },
  {
    what: "a name that is taken",
    code: 409,
    body: status(409, "AlreadyExists", 'secrets "a" already exists', { name: "a", kind: "secrets" }),
    expected: { class: "Transient", code: "AlreadyExists" },
  },
  {
    what: "a stale resourceVersion",
    code: 409,
    body: status(
      409,
      "Conflict",
      'Operation cannot be fulfilled on proxies.crawl.example.com "a": the object has been modified; please apply your changes to the latest version and try again',
      proxyDetails,
    ),
    expected: { class: "Transient", code: "Conflict" },
  },
  {
    what: "a JSON patch whose test failed",
    code: 422,
    body: status(422, "Invalid", "the server rejected our request due to an error in our request", {}),
    expected: { class: "Transient", code: "Conflict" },
  },
  {
    what: "missing RBAC",
    code: 403,
    body: status(403, "Forbidden", rbac, { group: "crawl.example.com", kind: "proxies" }),
    expected: { class: "Permanent", code: "Forbidden" },
  },
  {
    what: "a quota",
    code: 403,
    body: status(403, "Forbidden", quota, { name: "p", kind: "pods" }),
    expected: { class: "QuotaExceeded", code: "QuotaExceeded" },
  },
  {
    what: "a namespace that is going away",
    code: 403,
    body: status(
      403,
      "Forbidden",
      'pods "p" is forbidden: unable to create new content in namespace crawl because it is being terminated',
      terminating,
    ),
    expected: { class: "Transient", code: "NamespaceTerminating" },
  },
  {
    what: "refused credentials",
    code: 401,
    body: status(401, "Unauthorized", "Unauthorized"),
    expected: { class: "Transient", code: "Unauthorized" },
  },
  {
    what: "an expired list",
    code: 410,
    body: status(
      410,
      "Expired",
      "The provided continue parameter is too old to display a consistent list result. You can …",
    ),
    expected: { class: "Transient", code: "Gone" },
  },
  {
    what: "a malformed request",
    code: 400,
    body: status(400, "BadRequest", 'strict decoding error: unknown field "spec.colour"'),
    expected: { class: "Permanent", code: "BadRequest" },
  },
  {
    what: "overload, said in the header",
    code: 429,
    body: "Too many requests, please try again later.\n",
    headers: { "retry-after": "3" },
    expected: { class: "Transient", code: "TooManyRequests", retryAfterMs: 3000 },
  },
  {
    what: "overload, said in the body",
    code: 429,
    body: status(429, "TooManyRequests", "storage is (re)initializing", { retryAfterSeconds: 1 }),
    expected: { class: "Transient", code: "TooManyRequests", retryAfterMs: 1000 },
  },
  {
    what: "etcd without a leader",
    code: 500,
    body: status(500, "InternalError", "etcdserver: leader changed"),
    expected: { class: "Transient", code: "ServerError", ambiguous: true },
  },
  {
    what: "a balancer without a backend",
    code: 503,
    body: "no healthy upstream",
    expected: { class: "Transient", code: "Unavailable", ambiguous: true },
  },
  {
    what: "a request that the server cut off",
    code: 504,
    body: status(504, "Timeout", "Timeout: request did not complete within the allotted duration"),
    expected: { class: "Transient", code: "Timeout", ambiguous: true },
  },
  { what: "a method that is not there", code: 405, expected: { class: "Permanent", code: "MethodNotAllowed" } },
  { what: "an object that is too large", code: 413, expected: { class: "Permanent", code: "TooLarge" } },
  { what: "a redirect", code: 307, expected: { class: "Transient", code: "UnexpectedStatus" } },
];

test.each(rows)("$what is $expected.class $expected.code", ({ code, body, headers, expected }) => {
  const failure = classifyApiError(new ApiException(code, "", body, headers ?? {}), "PATCH /x", "write");
  const { class: failureClass, code: failureCode, retryAfterMs, ambiguous } = failure;
  expect({ class: failureClass, code: failureCode, retryAfterMs, ambiguous }).toEqual({
    retryAfterMs: undefined,
    ambiguous: false,
    ...expected,
  });
  expect(failure.message).toContain(`PATCH /x: HTTP ${code}`);
});

test("A refused value never reaches the message, but its field and the rule do", () => {
  const message =
    'Proxy.crawl.example.com "a" is invalid: spec.cloudInit.inline: Invalid value: "hunter2: \\"x\\"": is wrong';
  const causes = [
    {
      reason: "FieldValueInvalid",
      message: 'Invalid value: "hunter2: \\"x\\"": is wrong',
      field: "spec.cloudInit.inline",
    },
    { reason: "FieldValueInvalid", message: 'Invalid value: {"a":"hunter2"}: is wrong too', field: "spec.auth" },
    { reason: "FieldValueInvalid", message: "Invalid value: 70000: must be at most 65535", field: "spec.port" },
    { reason: "FieldValueInvalid", message: "Invalid value: set one of both", field: "spec.placement" },
  ];
  const body = status(422, "Invalid", message, { ...proxyDetails, causes });
  const failure = classifyApiError(new ApiException(422, "", body, {}), "PATCH /x");
  expect(failure).toMatchObject({ class: "Permanent", code: "Invalid" });
  expect(failure.cause).toBeUndefined();
  expect(failure.message).not.toContain("hunter2");
  expect(failure.message).toContain('"a" is invalid; spec.cloudInit.inline: Invalid value: is wrong');
  expect(failure.message).toContain("spec.port: Invalid value: must be at most 65535");
  expect(failure.message).toContain("spec.placement: Invalid value: set one of both");
});

test.each([
  { what: "a refused connection", code: "ECONNREFUSED", ambiguous: false },
  { what: "a name that does not resolve", code: "ENOTFOUND", ambiguous: false },
  { what: "a reset connection", code: "ECONNRESET", ambiguous: true },
  { what: "a connection that the server closed", code: "UND_ERR_SOCKET", ambiguous: true },
])("$what is Unreachable; for a write ambiguous: $ambiguous", ({ code, ambiguous }) => {
  const error = Object.assign(new Error("it broke"), { code });
  expect(classifyApiError(error, "POST /x")).toMatchObject({ class: "Transient", code: "Unreachable", ambiguous });
  expect(classifyApiError(error, "GET /x", "read").ambiguous).toBe(false);
  expect(classifyApiError(error, "POST /x").message).toBe(`it broke ${code} (POST /x)`);
});

test("A Failure stays as it is", () => {
  const failure = new Failure({ class: "QuotaExceeded", code: "X", message: "x" });
  expect(classifyApiError(failure, "POST /x")).toBe(failure);
});
