import { z } from "zod";

/** What a job is about. Handlers read everything else from the state. */
export interface Enqueued {
  key: string;
  /** W3C trace context of whoever enqueued. */
  traceparent?: string;
}

/** Marks the dedup id of a timer job (see `added-job.ts`), so no key may start with it. */
export const laterMark = "later:";

/** Unknown fields are ignored, so that versions can roll. A malformed traceparent must not cost the event. */
const payload = z.object({
  v: z.literal(1),
  key: z
    .string()
    .min(1)
    .max(512)
    .refine((key) => !key.startsWith(laterMark)),
  traceparent: z
    .string()
    .regex(/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/)
    .optional()
    .catch(undefined),
});

export function toPayload({ key, traceparent }: Enqueued): z.input<typeof payload> {
  return { v: 1, key, ...(traceparent === undefined ? {} : { traceparent }) };
}

/** Undefined for anything that is not a payload. */
export function parsePayload(data: unknown): Enqueued | undefined {
  const parsed = payload.safeParse(data).data;
  if (parsed === undefined) return undefined;
  const { key, traceparent } = parsed;
  return { key, ...(traceparent === undefined ? {} : { traceparent }) };
}
