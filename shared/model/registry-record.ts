import { z } from "zod";

const flag = z.enum(["0", "1"]).transform((value) => value === "1");
const count = z.coerce.number();

/** How to probe one instance. A plain copy of what the Proxy says, with the defaults filled in. */
const probeSpec = z.object({
  /** Undefined: a TCP connect and the proxy's own answer to a CONNECT count. */
  url: z.string().optional(),
  expectedStatus: z.number().int().optional(),
  intervalSeconds: z.number().int().positive(),
  timeoutSeconds: z.number().int().positive(),
  healthyThreshold: z.number().int().positive(),
  unhealthyThreshold: z.number().int().positive(),
});

export const credentials = z.object({ username: z.string(), password: z.string() });
export type Credentials = z.infer<typeof credentials>;

/** JSON text of that shape. Its error never repeats the text, which may be credentials; that of JSON.parse does. */
export function jsonText<T extends z.ZodType>(schema: T) {
  return z
    .string()
    .transform((text, context): unknown => {
      try {
        return JSON.parse(text);
      } catch {
        context.addIssue({ code: "custom", message: "expected JSON" });
        return z.NEVER;
      }
    })
    .pipe(schema);
}

/**
 * The hash `{ep}:px:<uid>:<incarnation>`: all that a probe or a grant needs to know of one instance. Each field has one
 * writer, so that nobody overwrites what somebody else knows better.
 *
 * A removed instance leaves a tombstone for 10 minutes: `deleted` = 1, `fence` and the fields of the lease scripts, and
 * nothing else. It has no `uid`, and does not parse as a record.
 */
export const registryRecord = z.object({
  // Written by reconcile, under its fencing token.
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  incarnation: count,
  provider: z.string(),
  region: z.string(),
  zone: z.string(),
  host: z.string(),
  port: count,
  /** The provider's word for the address that sites see; empty when it does not know. */
  egressIP: z.string(),
  labels: jsonText(z.record(z.string(), z.string())),
  /** Absent: the proxy needs none. */
  credentials: jsonText(credentials).optional(),
  probe: jsonText(probeSpec),
  /** Most leases at once; 0: never leased. */
  max: count,
  draining: flag,
  fence: count,
  bucket: z.string(),
  // Written by health-probe.
  healthy: flag.optional(),
  latencyMs: count.optional(),
  /** What the probe's echo said the address is. */
  observedIP: z.string().optional(),
  /** Why the last verdict is what it is: a reason code and a sentence. */
  verdictReason: z.string().optional(),
  verdictMessage: z.string().optional(),
  verdictAt: count.optional(),
  // Written by the lease scripts.
  leases: count.default(0),
  lastGrant: count.default(0),
  /** Score of the member in its free set: leases first, then least recently granted. Maintained by the lease scripts. */
  rank: count.default(0),
});
export type RegistryRecord = z.infer<typeof registryRecord>;
