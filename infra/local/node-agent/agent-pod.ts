import { z } from "zod";

const volume = z.object({
  name: z.string(),
  secret: z.object({ secretName: z.string() }).optional(),
  emptyDir: z.object({}).optional(),
});

const container = z.object({
  name: z.string(),
  image: z.string().default(""),
  command: z.array(z.string()).default([]),
  args: z.array(z.string()).default([]),
  ports: z.array(z.object({ containerPort: z.int() })).default([]),
  volumeMounts: z.array(z.object({ name: z.string(), mountPath: z.string().startsWith("/") })).default([]),
});

/** What the agent reads of a Pod. */
export const agentPod = z.object({
  metadata: z.object({
    namespace: z.string(),
    name: z.string(),
    uid: z.string(),
    deletionTimestamp: z.string().optional(),
    deletionGracePeriodSeconds: z.number().optional(),
  }),
  spec: z.object({
    nodeName: z.string().optional(),
    restartPolicy: z.enum(["Always", "OnFailure", "Never"]).default("Always"),
    securityContext: z.object({ runAsUser: z.int().optional(), runAsGroup: z.int().optional() }).default({}),
    containers: z.array(container).min(1),
    volumes: z.array(volume).default([]),
  }),
  status: z
    .object({
      phase: z.string().default("Pending"),
      podIP: z.string().optional(),
      startTime: z.string().optional(),
    })
    .default({ phase: "Pending" }),
});
export type AgentPod = z.infer<typeof agentPod>;
export type AgentContainer = z.infer<typeof container>;

/** `namespace/name`, for people. */
export function podKey({ metadata }: AgentPod): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** It has ended for good: Kubernetes never starts such a Pod again. */
export function isOver({ status }: AgentPod): boolean {
  return status.phase === "Failed" || status.phase === "Succeeded";
}
