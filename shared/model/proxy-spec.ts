import { z } from "zod";
import { dnsLabelPattern } from "./names.ts";

/** A rule of the API server's own expression language; the message is what kubectl shows. */
function cel(rule: string, message: string) {
  return { "x-kubernetes-validations": [{ rule, message }] };
}

const secretName = z
  .string()
  .min(1)
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/);

const placement = z
  .object({
    region: z.string().max(63).optional().describe("Region of a cloud provider."),
    zone: z.string().max(63).optional().describe("Zone of a cloud provider, or the host of a kvm provider."),
    machineType: z.string().max(63).optional().describe("Size of the machine, in the provider's own words."),
    image: z.string().max(512).optional().describe("Image of the machine, in the provider's own words."),
  })
  .describe("Where and on what the proxy runs. The kubernetes provider ignores it.");

const cloudInit = z
  .object({
    inline: z.string().max(65_536).optional().describe("The user-data itself."),
    secretKeyRef: z
      .object({
        name: secretName.describe("Name of a Secret in the namespace of the Proxy."),
        key: z.string().min(1).max(253).describe("Key in that Secret."),
      })
      .optional()
      .describe("A Secret key that holds the user-data."),
  })
  .describe("User-data of the machine, delivered byte for byte. The kubernetes provider ignores it.")
  .meta(cel("has(self.inline) != has(self.secretKeyRef)", "set exactly one of inline and secretKeyRef"));

const auth = z
  .object({
    secretRef: z
      .object({
        name: secretName.describe(
          "Name of a Secret in the namespace of the Proxy, with the keys username and password.",
        ),
      })
      .describe("The Secret with the credentials."),
  })
  .describe("What clients of the proxy must present. Probes use it, and a lease hands it out.");

const healthCheck = z
  .object({
    url: z
      .string()
      .max(2048)
      .regex(/^https?:\/\/[^\s/]+/)
      .optional()
      .describe("http or https address that is fetched through the proxy. Without it HEALTH_CHECK_URL counts."),
    expectedStatus: z
      .int()
      .min(100)
      .max(599)
      .optional()
      .describe("Status that counts as healthy; any from 200 to 399 when absent."),
    intervalSeconds: z.int().min(1).max(3600).default(15).describe("Time between two probes."),
    timeoutSeconds: z.int().min(1).max(60).default(5).describe("Time that one probe may take."),
    healthyThreshold: z.int().min(1).max(20).default(2).describe("Successes in a row that make the proxy healthy."),
    unhealthyThreshold: z.int().min(1).max(20).default(3).describe("Failures in a row that make the proxy unhealthy."),
  })
  .describe("How the proxy is probed.");

/** What a user asks for. Descriptions are what `kubectl explain` shows; defaults are filled in by the API server. */
export const proxySpec = z
  .object({
    provider: z
      .string()
      .min(1)
      .max(63)
      .regex(new RegExp(dnsLabelPattern))
      .describe("Name of a configured provider. Cannot be changed later.")
      .meta(cel("self == oldSelf", "provider is immutable: create a new Proxy instead")),
    placement: placement.optional(),
    cloudInit: cloudInit.optional(),
    port: z.int().min(1).max(65_535).default(3128).describe("Port that the proxy listens on."),
    auth: auth.optional(),
    healthCheck: healthCheck.prefault({}),
    maxLeases: z.int().min(0).max(10_000).default(1).describe("Most leases at the same time; 0: never leased."),
  })
  .describe("The proxy that is wanted.");
export type ProxySpec = z.infer<typeof proxySpec>;
