import { z } from "zod";

/** What a job is about. Handlers read everything else from the state. */
export interface Enqueued {
  key: string;
  /** W3C trace context of whoever enqueued. */
  traceparent?: string;
  /** Of a timer: a run that waits for the key already, also for a retry, is left where it is. */
  givesWay?: true;
}

/** Begin the dedup ids of timer jobs (see `added-job.ts`), so no key may begin with one. A timer that gives way covers none that does not. */
const timerMarks = { firm: "later:", givesWay: "look:" } as const;

/** Dedup id of the timers of a key. */
export function timerId({ key, givesWay }: Enqueued): string {
  return `${givesWay === true ? timerMarks.givesWay : timerMarks.firm}${key}`;
}

/** The key that a dedup id is about, be it of a run or of a timer. */
export function keyOfDedupId(id: string): string {
  const mark = Object.values(timerMarks).find((each) => id.startsWith(each)) ?? "";
  return id.slice(mark.length);
}

/** Unknown fields are ignored, so that versions can roll. A malformed traceparent must not cost the event. */
const payload = z.object({
  v: z.literal(1),
  key: z
    .string()
    .min(1)
    .max(512)
    .refine((key) => keyOfDedupId(key) === key),
  traceparent: z
    .string()
    .regex(/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/)
    .optional()
    .catch(undefined),
  givesWay: z.literal(true).optional().catch(undefined),
});

export function toPayload({ key, traceparent, givesWay }: Enqueued): z.input<typeof payload> {
  return {
    v: 1,
    key,
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(givesWay === undefined ? {} : { givesWay }),
  };
}

/** Undefined for anything that is not a payload. */
export function parsePayload(data: unknown): Enqueued | undefined {
  const parsed = payload.safeParse(data).data;
  if (parsed === undefined) return undefined;
  const { key, traceparent, givesWay } = parsed;
  return {
    key,
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(givesWay === undefined ? {} : { givesWay }),
  };
}
