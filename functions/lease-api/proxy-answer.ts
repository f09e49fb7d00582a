import { z } from "zod";
import { proxyStates } from "#shared/lease/counts.ts";
import type { ListedProxy } from "#shared/lease/proxies.ts";

/** One instance as the lists of proxies show it: never its credentials. */
export const proxyAnswer = z.object({
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  incarnation: z.int().describe("Counts the instances that this Proxy has had."),
  provider: z.string(),
  region: z.string(),
  zone: z.string(),
  labels: z.record(z.string(), z.string()),
  state: z.enum(proxyStates),
  reason: z.string().optional().describe("What the last change of health was about."),
  message: z.string().optional(),
  host: z.string(),
  port: z.int(),
  egressIP: z.string().describe("Address that sites see; empty while nobody knows it."),
  latencyMs: z.number().optional().describe("Of the last probe."),
  leases: z.int(),
  maxLeases: z.int(),
  lastGrantAt: z.iso.datetime().optional(),
});

export const proxyList = z.object({ proxies: z.array(proxyAnswer), nextCursor: z.string().optional() });

export function toProxyAnswer({ record, state }: ListedProxy): z.infer<typeof proxyAnswer> {
  return {
    namespace: record.namespace,
    name: record.name,
    uid: record.uid,
    incarnation: record.incarnation,
    provider: record.provider,
    region: record.region,
    zone: record.zone,
    labels: record.labels,
    state,
    ...(record.verdictReason === undefined ? {} : { reason: record.verdictReason }),
    ...(record.verdictMessage === undefined ? {} : { message: record.verdictMessage }),
    host: record.host,
    port: record.port,
    egressIP: record.observedIP === undefined || record.observedIP === "" ? record.egressIP : record.observedIP,
    ...(record.latencyMs === undefined ? {} : { latencyMs: record.latencyMs }),
    leases: record.leases,
    maxLeases: record.max,
    ...(record.lastGrant === 0 ? {} : { lastGrantAt: new Date(record.lastGrant).toISOString() }),
  };
}
