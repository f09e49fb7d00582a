import { ApiException } from "@kubernetes/client-node";
import { afterAll, expect, test } from "vitest";
import type { ApiClient } from "#test/api-client.ts";
import { TestApi } from "#test/kubernetes-api.ts";
import { classifyApiError } from "./failure.ts";

const api = await TestApi.start();
afterAll(() => api.stop());

const group = "/apis/crawl.example.com/v1alpha1";
const proxies = `${group}/namespaces/${api.namespace}/proxies`;
const [jsonPatch, mergePatch] = ["application/json-patch+json", "application/merge-patch+json"];
const object = (more: object = {}) => ({
  apiVersion: "crawl.example.com/v1alpha1",
  kind: "Proxy",
  metadata: { name: "held" },
  spec: { provider: "lab" },
  ...more,
});
expect((await api.call("POST", proxies, { body: object() })).status).toBe(201);
const stale = { metadata: { resourceVersion: "1" }, spec: { maxLeases: 2 } };
const configMaps = `/api/v1/namespaces/${api.namespace}/configmaps`;

type Request = Parameters<ApiClient["call"]>;
const rows: { what: string; request: Request; code: number; expected: { class: string; code: string } }[] = [
  {
    what: "a Proxy that does not exist",
    request: ["GET", `${proxies}/nobody`],
    code: 404,
    expected: { class: "NotFound", code: "NotFound" },
  },
  {
    what: "a patch of a Proxy that does not exist",
    request: ["PATCH", `${proxies}/nobody/status`, { body: { status: {} }, type: mergePatch }],
    code: 404,
    expected: { class: "NotFound", code: "NotFound" },
  },
  {
    what: "a kind that is not served",
    request: ["GET", `${group}/namespaces/default/nothings/a`],
    code: 404,
    expected: { class: "Transient", code: "NotServed" },
  },
  {
    what: "a group that is not served",
    request: ["GET", "/apis/nothing.example.com/v1/nothings"],
    code: 404,
    expected: { class: "Transient", code: "NotServed" },
  },
  {
    what: "a namespace that does not exist",
    request: ["POST", `${group}/namespaces/nowhere/proxies`, { body: object() }],
    code: 404,
    expected: { class: "Transient", code: "NamespaceNotFound" },
  },
  {
    what: "a name that is taken",
    request: ["POST", proxies, { body: object() }],
    code: 409,
    expected: { class: "Transient", code: "AlreadyExists" },
  },
  {
    what: "a merge patch with a stale resourceVersion",
    request: ["PATCH", `${proxies}/held`, { body: stale, type: mergePatch }],
    code: 409,
    expected: { class: "Transient", code: "Conflict" },
  },
  {
    what: "a merge patch of the status with a stale resourceVersion",
    request: ["PATCH", `${proxies}/held/status`, { body: { ...stale, status: { phase: "Ready" } }, type: mergePatch }],
    code: 409,
    expected: { class: "Transient", code: "Conflict" },
  },
  {
    what: "a PUT with a stale resourceVersion",
    request: ["PUT", `${proxies}/held`, { body: object({ metadata: { name: "held", resourceVersion: "1" } }) }],
    code: 409,
    expected: { class: "Transient", code: "Conflict" },
  },
  {
    what: "a JSON patch whose test failed",
    request: [
      "PATCH",
      `${proxies}/held`,
      { body: [{ op: "test", path: "/metadata/uid", value: "x" }], type: jsonPatch },
    ],
    code: 422,
    expected: { class: "Transient", code: "Conflict" },
  },
  {
    what: "a deletion of another uid",
    request: ["DELETE", `${proxies}/held`, { body: { preconditions: { uid: "another" } } }],
    code: 409,
    expected: { class: "Transient", code: "Conflict" },
  },
  {
    what: "a refused value",
    request: ["PATCH", `${proxies}/held`, { body: { spec: { port: 0 } }, type: mergePatch }],
    code: 422,
    expected: { class: "Permanent", code: "Invalid" },
  },
  {
    what: "an unknown field, strictly",
    request: [
      "POST",
      `${proxies}?fieldValidation=Strict`,
      { body: object({ metadata: { name: "x" }, spec: { provider: "lab", x: 1 } }) },
    ],
    code: 400,
    expected: { class: "Permanent", code: "BadRequest" },
  },
  {
    what: "a continue token that is none",
    request: ["GET", `${proxies}?limit=1&continue=garbage`],
    code: 400,
    expected: { class: "Permanent", code: "BadRequest" },
  },
  {
    what: "refused credentials",
    request: ["GET", proxies, { headers: { authorization: "Bearer wrong" } }],
    code: 401,
    expected: { class: "Transient", code: "Unauthorized" },
  },
  {
    what: "a patch of a type that custom objects do not take",
    request: ["PATCH", `${proxies}/held`, { body: {}, type: "application/strategic-merge-patch+json" }],
    code: 415,
    expected: { class: "Permanent", code: "UnsupportedMediaType" },
  },
  {
    what: "an object that is too large",
    request: ["POST", configMaps, { body: { metadata: { name: "large" }, data: { a: "x".repeat(4 * 1024 * 1024) } } }],
    code: 413,
    expected: { class: "Permanent", code: "TooLarge" },
  },
];

test.each(rows)("$what is $expected.class $expected.code", async ({ request, code, expected }) => {
  const { status, text } = await api.call(...request);
  expect(status, text).toBe(code);
  expect(classifyApiError(new ApiException(status, "", text, {}), "PATCH /x", "write")).toMatchObject(expected);
});

test("A refused value stays out of the message, its field and the rule do not", async () => {
  const spec = {
    port: 0,
    cloudInit: { inline: "hunter2", secretKeyRef: { name: "a", key: "b" } },
    provider: "hunter2",
  };
  const { status, text } = await api.call("PATCH", `${proxies}/held`, { body: { spec }, type: mergePatch });
  const { message } = classifyApiError(new ApiException(status, "", text, {}), "PATCH /x", "write");
  expect(message).not.toContain("hunter2");
  expect(message).toContain("spec.port: Invalid value: spec.port in body should be greater than or equal to 1");
  expect(message).toContain("spec.cloudInit: Invalid value: set exactly one of inline and secretKeyRef");
  expect(message).toContain("spec.provider: Invalid value: provider is immutable");
});
