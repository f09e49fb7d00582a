import { readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { TestApi } from "#test/kubernetes-api.ts";
import { proxySpec } from "./proxy-spec.ts";

const api = await TestApi.start();
afterAll(() => api.stop());

const proxies = `/apis/crawl.example.com/v1alpha1/namespaces/${api.namespace}/proxies`;
/** What kubectl apply sends: an unknown field is an error. */
const create = (name: string, spec: object) =>
  api.call("POST", `${proxies}?fieldValidation=Strict`, {
    body: { apiVersion: "crawl.example.com/v1alpha1", kind: "Proxy", metadata: { name }, spec },
  });

const sampleFile = path.join(import.meta.dirname, "../../infra/local/samples/proxies.yaml");
const samples = parseAllDocuments(readFileSync(sampleFile, "utf8"))
  .map((document) => z.looseObject({ kind: z.string(), spec: z.looseObject({}).optional() }).parse(document.toJS()))
  .flatMap(({ kind, spec }) => (kind === "Proxy" && spec ? [spec] : []));

const longest = "a".repeat(63);
const valid: object[] = [
  ...samples,
  { provider: "lab" },
  { provider: longest, port: 1, maxLeases: 0 },
  { provider: "a", port: 65_535, maxLeases: 10_000 },
  { provider: "lab", placement: {} },
  { provider: "lab", placement: { region: longest, zone: longest, machineType: longest, image: "i".repeat(512) } },
  { provider: "lab", cloudInit: { inline: "" } },
  { provider: "lab", cloudInit: { inline: "#".repeat(65_536) } },
  { provider: "lab", cloudInit: { secretKeyRef: { name: "user-data", key: "cloud.cfg" } } },
  { provider: "lab", auth: { secretRef: { name: "proxy.login" } } },
  { provider: "lab", healthCheck: {} },
  { provider: "lab", healthCheck: { url: "http://x", expectedStatus: 100, intervalSeconds: 3600, timeoutSeconds: 60 } },
  { provider: "lab", healthCheck: { url: "https://x/a?b#c", healthyThreshold: 20, unhealthyThreshold: 1 } },
];

test.each(valid.map((spec) => ({ spec })))(
  "$spec is a Proxy, and comes back as our parser reads it",
  async ({ spec }) => {
    const { status, text, body } = await create(`valid-${valid.indexOf(spec)}`, spec);
    expect(status, text).toBe(201);
    expect(body["spec"]).toEqual(proxySpec.parse(spec));
  },
);

const invalid: [object, string][] = [
  [{}, "spec.provider: Required value"],
  [{ provider: "" }, 'spec.provider: Invalid value: "": spec.provider in body should be at least 1 chars long'],
  [{ provider: "Lab" }, 'spec.provider: Invalid value: "Lab": spec.provider in body should match'],
  [{ provider: `${longest}a` }, "spec.provider: Too long: may not be more than 63 bytes"],
  [{ provider: 7 }, 'spec.provider: Invalid value: "integer": spec.provider in body must be of type string: "integer"'],
  [{ provider: "lab", port: 0 }, "spec.port: Invalid value: 0: spec.port in body should be greater than or equal to 1"],
  [{ provider: "lab", port: 65_536 }, "spec.port in body should be less than or equal to 65535"],
  [{ provider: "lab", port: 1.5 }, 'spec.port in body must be of type integer: "number"'],
  [{ provider: "lab", port: "1" }, 'spec.port in body must be of type integer: "string"'],
  [{ provider: "lab", maxLeases: -1 }, "spec.maxLeases in body should be greater than or equal to 0"],
  [{ provider: "lab", maxLeases: 10_001 }, "spec.maxLeases in body should be less than or equal to 10000"],
  [{ provider: "lab", placement: "here" }, 'spec.placement in body must be of type object: "string"'],
  [{ provider: "lab", placement: { zone: `${longest}a` } }, "spec.placement.zone: Too long: may not be more than 63"],
  [{ provider: "lab", cloudInit: {} }, "spec.cloudInit: Invalid value: set exactly one of inline and secretKeyRef"],
  [
    { provider: "lab", cloudInit: { inline: "", secretKeyRef: { name: "a", key: "b" } } },
    "spec.cloudInit: Invalid value: set exactly one of inline and secretKeyRef",
  ],
  [{ provider: "lab", cloudInit: { inline: "#".repeat(65_537) } }, "spec.cloudInit.inline: Too long"],
  [{ provider: "lab", cloudInit: { secretKeyRef: { name: "a" } } }, "spec.cloudInit.secretKeyRef.key: Required value"],
  [{ provider: "lab", auth: {} }, "spec.auth.secretRef: Required value"],
  [{ provider: "lab", auth: { secretRef: { name: "A" } } }, 'spec.auth.secretRef.name: Invalid value: "A"'],
  [{ provider: "lab", healthCheck: { url: "ftp://x" } }, "spec.healthCheck.url in body should match"],
  [
    { provider: "lab", healthCheck: { expectedStatus: 99 } },
    "spec.healthCheck.expectedStatus in body should be greater",
  ],
  [
    { provider: "lab", healthCheck: { intervalSeconds: 0 } },
    "spec.healthCheck.intervalSeconds in body should be greater",
  ],
  [{ provider: "lab", healthCheck: { timeoutSeconds: 61 } }, "spec.healthCheck.timeoutSeconds in body should be less"],
];

test.each(invalid)("%j is no Proxy, for the API and for our parser: %s", async (spec, message) => {
  const { status, body } = await create("invalid", spec);
  expect(body.message).toContain(message);
  expect(status).toBe(422);
  expect(body.message).toContain('Proxy.crawl.example.com "invalid" is invalid: ');
  if (!message.includes("exactly one")) expect(proxySpec.safeParse(spec).success).toBe(false); // a rule of CEL alone
});

test("A field that no Proxy has is refused by its name", async () => {
  const { status, body } = await create("unknown", { provider: "lab", healthCheck: { ur: "http://x" } });
  expect(status).toBe(400);
  expect(body.message).toContain('strict decoding error: unknown field "spec.healthCheck.ur"');
});

/** Of OpenAPI, as the server publishes it. */
interface Schema {
  description?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema;
  items?: Schema;
}
const schema: z.ZodType<Schema> = z.lazy(() =>
  z.looseObject({
    description: z.string().exactOptional(),
    properties: z.record(z.string(), schema).exactOptional(),
    additionalProperties: schema.exactOptional(),
    items: schema.exactOptional(),
  }),
);

/** Every field below a schema with its description; those of a list's items, too. */
function fieldsOf({ properties = {}, items, additionalProperties }: Schema, path: string): [string, string][] {
  const own = Object.entries(properties).flatMap(([name, field]): [string, string][] => [
    [`${path}.${name}`, field.description ?? ""],
    ...fieldsOf(field, `${path}.${name}`),
  ]);
  return [items, additionalProperties].reduce(
    (all, each) => (each ? [...all, ...fieldsOf(each, `${path}[]`)] : all),
    own,
  );
}

test("kubectl explain has a description for every field of spec and status", async () => {
  const { body } = await api.call("GET", "/openapi/v3/apis/crawl.example.com/v1alpha1");
  const schemas = z.looseObject({ components: z.object({ schemas: z.record(z.string(), schema) }) });
  const proxy = schemas.parse(body).components.schemas["com.example.crawl.v1alpha1.Proxy"];
  const { spec = {}, status = {} } = proxy?.properties ?? {};
  const fields = [...fieldsOf(spec, "spec"), ...fieldsOf(status, "status")];
  expect(fields.length).toBeGreaterThan(40);
  expect([spec.description, status.description]).not.toContain(undefined);
  expect(fields.filter(([, description]) => description.length < 10)).toEqual([]);
});
