import { z } from "zod";
import { proxySpec } from "./proxy-spec.ts";
import { proxyStatus } from "./proxy-status.ts";

/** The metadata that our decisions look at. */
const objectMeta = z.object({
  name: z.string(),
  namespace: z.string(),
  uid: z.string(),
  resourceVersion: z.string(),
  generation: z.number().int(),
  creationTimestamp: z.string(),
  deletionTimestamp: z.string().optional(),
  finalizers: z.array(z.string()).default([]),
  labels: z.record(z.string(), z.string()).default({}),
  annotations: z.record(z.string(), z.string()).default({}),
});

/** A Proxy as the API server returns it. */
export const proxy = z.object({ metadata: objectMeta, spec: proxySpec, status: proxyStatus.default({}) });
export type Proxy = z.infer<typeof proxy>;

/** `<namespace>/<name>`: the key of its jobs. */
export function proxyKey(object: { metadata: { namespace: string; name: string } }): string {
  return `${object.metadata.namespace}/${object.metadata.name}`;
}

/** Splits a job key. Throws on anything that is not `<namespace>/<name>`. */
export function parseProxyKey(key: string): { namespace: string; name: string } {
  const [namespace, name, ...rest] = key.split("/");
  if (!namespace || !name || rest.length > 0) throw new Error(`not the key of a Proxy: ${key}`);
  return { namespace, name };
}

/** `<namespace>/<name>` of each Secret that a Proxy names, once. */
export function secretsOf({ metadata, spec }: Pick<Proxy, "metadata" | "spec">): string[] {
  const names = [spec.auth?.secretRef.name, spec.cloudInit?.secretKeyRef?.name].filter((name) => name !== undefined);
  return [...new Set(names)].map((name) => `${metadata.namespace}/${name}`);
}
