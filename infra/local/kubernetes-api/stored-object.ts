import { z } from "zod";
import { isObject, without } from "./json.ts";

const ownerReference = z.looseObject({ uid: z.string(), kind: z.string(), name: z.string() });
const commonMetadata = {
  namespace: z.string().optional(),
  generateName: z.string().optional(),
  generation: z.number().optional(),
  deletionTimestamp: z.string().optional(),
  deletionGracePeriodSeconds: z.number().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
  finalizers: z.array(z.string()).optional(),
  ownerReferences: z.array(ownerReference).optional(),
};

/** An object as it lies in the store. Whoever changes one makes a new one: readers keep the old. */
export const storedObject = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({
    ...commonMetadata,
    name: z.string(),
    uid: z.string(),
    resourceVersion: z.string(),
    creationTimestamp: z.string(),
  }),
});
export type StoredObject = z.infer<typeof storedObject>;

/** An object as a client sends it. Go clients write null for a time that is not set, which means absent. */
export const sentObject = z.looseObject({
  apiVersion: z.string().optional(),
  kind: z.string().optional(),
  metadata: z.preprocess(
    withoutNulls,
    z.looseObject({
      ...commonMetadata,
      name: z.string().optional(),
      uid: z.string().optional(),
      resourceVersion: z.string().optional(),
    }),
  ),
});
export type SentObject = z.infer<typeof sentObject>;

function withoutNulls(value: unknown): unknown {
  if (!isObject(value)) return value ?? {};
  return without(value, ...Object.keys(value).filter((key) => value[key] === null));
}

/** Times of the API have whole seconds. */
export function timestamp(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace(/\.\d+Z$/, "Z");
}
