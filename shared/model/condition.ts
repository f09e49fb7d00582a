import { z } from "zod";

/** Types and reasons of a Proxy's conditions. One table; the documentation is checked against it. */
export const conditionTypes = ["Ready", "Provisioned", "Healthy", "Reconciling", "Stalled"] as const;
export type ConditionType = (typeof conditionTypes)[number];

const conditionReasons = [
  // Provisioned
  "Provisioned",
  "IntentRecorded",
  "Creating",
  "OperationFailed",
  "QuotaExceeded",
  "TransientError",
  "PermanentError",
  "ProviderNotConfigured",
  "ProviderUnavailable",
  "NameConflict",
  "LaunchTimeout",
  "InstanceStopped",
  "InstanceVanished",
  // Healthy
  "ProbeSucceeded",
  "ProbeFailed",
  "ReadyTimeout",
  "ProbeTargetSuspect",
  "ProbePending",
  // Ready
  "Ready",
  // Reconciling
  "Replacing",
  "Draining",
  "Deleting",
  "WaitingForRetry",
  // Stalled
  "DeletionBlocked",
] as const;
export type ConditionReason = (typeof conditionReasons)[number];

/** kubectl and people read at most this much of a message; longer ones are cut with an ellipsis. */
export const messageLimit = 1024;

export const condition = z.object({
  type: z.string().max(316).describe("What this condition is about."),
  status: z.enum(["True", "False", "Unknown"]).describe("Whether it holds."),
  reason: z
    .string()
    .min(1)
    .max(64)
    .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/)
    .describe("One CamelCase word that a machine can match."),
  message: z.string().max(messageLimit).describe("A sentence for a person."),
  observedGeneration: z.int().min(0).optional().describe("The generation of the spec that this was judged on."),
  lastTransitionTime: z.iso.datetime().describe("When the status last changed."),
});
export type Condition = z.infer<typeof condition>;
