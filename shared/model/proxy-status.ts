import { z } from "zod";
import { condition } from "./condition.ts";

const time = z.iso.datetime();

/** One incarnation of the proxy on a backend: first the intent, later what came of it. */
const instanceRecord = z.object({
  name: z.string().max(63).describe("Name on the backend. Never used twice."),
  incarnation: z.int().min(1).describe("Counts up with every replacement."),
  zone: z.string().max(63).describe("Zone or host that was chosen; empty where there is none."),
  specHash: z.string().max(64).describe("Fingerprint of what the instance was made from."),
  specHashVersion: z.string().max(8).describe("How the fingerprint was made."),
  intentTime: time.describe("When it was decided to create it. Written before the backend is called."),
  providerID: z.string().max(512).optional().describe("The backend's name for it, once it answered."),
  createdTime: time.optional().describe("When the backend says it was created."),
});
export type InstanceRecord = z.infer<typeof instanceRecord>;

export const phases = ["Pending", "Provisioning", "Unhealthy", "Ready", "Failed", "Deleting"] as const;
export type Phase = (typeof phases)[number];

/** Written by reconcile alone. */
export const proxyStatus = z
  .object({
    observedGeneration: z.int().min(0).optional().describe("The generation of the spec that this status is about."),
    phase: z.enum(phases).optional().describe("One word for people; machines read the conditions."),
    conditions: z
      .array(condition)
      .max(16)
      .optional()
      .describe("What holds and what does not.")
      .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] }),
    instance: instanceRecord.optional().describe("The current incarnation."),
    retiring: z.array(instanceRecord).max(16).optional().describe("Older incarnations that are not gone yet."),
    endpoint: z
      .object({
        host: z.string().max(253).describe("Address that it listens on."),
        port: z.int().min(1).max(65_535).describe("Port that it listens on."),
      })
      .optional()
      .describe("Where the proxy listens."),
    egressIP: z.string().max(64).optional().describe("The address that sites see, as far as it is known."),
    health: z
      .object({
        latencyMillis: z.int().min(0).optional().describe("How long the probe took that led to the last verdict."),
        lastTransitionTime: time.describe("When the verdict last changed."),
        message: z.string().max(1024).describe("What the probe saw."),
      })
      .optional()
      .describe("The last verdict of the health probe."),
  })
  .describe("What is there. Written by Egress Proxies alone.");
export type ProxyStatus = z.infer<typeof proxyStatus>;
