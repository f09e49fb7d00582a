import { z } from "zod";

/** What JSON calls an object. Its values are looked at before they are used. */
export type JsonObject = { [key: string]: unknown };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object at `key`, an empty one when there is none: a reader need not ask at every step. */
export function objectAt(parent: unknown, key: string): JsonObject {
  const child = isObject(parent) ? parent[key] : undefined;
  return isObject(child) ? child : {};
}

const metadata = z.looseObject({
  name: z.string().default(""),
  generateName: z.string().optional(),
  namespace: z.string().optional(),
  uid: z.string().default(""),
  resourceVersion: z.string().default(""),
  generation: z.number().optional(),
  deletionTimestamp: z.string().optional(),
  deletionGracePeriodSeconds: z.number().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
  finalizers: z.array(z.string()).optional(),
  ownerReferences: z.array(z.looseObject({ uid: z.string() })).optional(),
});

// Go clients write null for a time that is not set.
const withoutNulls = (value: unknown): unknown =>
  isObject(value) ? Object.fromEntries(Object.entries(value).filter(([, child]) => child !== null)) : value;

/** An object as it is sent and as it is stored. One in the store is never changed: a change makes a new one. */
export const kubeObject = z.looseObject({ metadata: z.preprocess(withoutNulls, metadata.prefault({})) });
export type KubeObject = z.infer<typeof kubeObject>;
