import { z } from "zod";
import { group, version } from "./names.ts";
import { proxySpec } from "./proxy-spec.ts";
import { proxyStatus } from "./proxy-status.ts";

interface PrinterColumn {
  name: string;
  type: string;
  jsonPath: string;
  description: string;
  priority?: number;
}

const ready = (field: string): string => `.status.conditions[?(@.type=="Ready")].${field}`;

const proxyColumns: PrinterColumn[] = [
  { name: "Provider", type: "string", jsonPath: ".spec.provider", description: "Configured provider." },
  { name: "Phase", type: "string", jsonPath: ".status.phase", description: "One word for people." },
  { name: "Ready", type: "string", jsonPath: ready("status"), description: "Whether it can be leased." },
  { name: "IP", type: "string", jsonPath: ".status.endpoint.host", description: "Where the proxy listens." },
  { name: "Port", type: "integer", jsonPath: ".spec.port", description: "Port that the proxy listens on." },
  {
    name: "Max-Leases",
    type: "integer",
    jsonPath: ".spec.maxLeases",
    description: "Most leases at the same time.",
    priority: 1,
  },
  { name: "Reason", type: "string", jsonPath: ready("reason"), description: "What holds it back." },
  { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: "Time since it was applied." },
];

/** The CustomResourceDefinition of Proxy, made from the same schemas that parse it. */
export function proxyCrd() {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `proxies.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: {
        kind: "Proxy",
        listKind: "ProxyList",
        plural: "proxies",
        singular: "proxy",
        shortNames: ["px"],
        categories: ["crawl"],
      },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: proxyColumns,
          schema: { openAPIV3Schema: objectSchema() },
        },
      ],
    },
  };
}

function objectSchema() {
  return {
    type: "object",
    description: "A forward proxy that runs on a provider and can be leased by crawlers.",
    required: ["spec"],
    properties: {
      apiVersion: { type: "string", description: "Version of the schema of this object." },
      kind: { type: "string", description: "Kind of this object." },
      metadata: { type: "object" },
      spec: structural(proxySpec),
      status: structural(proxyStatus),
    },
  };
}

/** A zod schema in the subset of OpenAPI that the API server takes ("structural schema"). */
function structural(schema: z.ZodType): unknown {
  return withoutExtras(z.toJSONSchema(schema, { target: "openapi-3.0", io: "input" }));
}

/** Bounds that zod adds to every integer; they say nothing that `type: integer` does not. */
const safeInteger = new Set([Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]);

function withoutExtras(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withoutExtras);
  if (typeof node !== "object" || node === null) return node;
  const kept = Object.entries(node).filter(([key, value]) => {
    if (key === "additionalProperties" && value === false) return false; // the API server prunes by itself
    if ((key === "minimum" || key === "maximum") && safeInteger.has(value)) return false;
    // zod writes both its own pattern and `format: date-time`; the API server knows the format.
    return !(key === "pattern" && "format" in node && node.format === "date-time");
  });
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutExtras(value)]));
}
