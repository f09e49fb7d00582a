import { keys, queuePrefix } from "#shared/model/keys.ts";
import type { RedisClient } from "#shared/redis/connect.ts";

const jobFunctions = ["reconcile", "gc-sweep", "provider-check", "lease"] as const;
/** The functions that take jobs. */
export type JobFunction = (typeof jobFunctions)[number];

/** Names a queue: one per function and provider, so that a provider can be paused, watched and drained on its own. */
export interface QueueRef {
  fn: JobFunction;
  /** Configured name (a DNS-1123 label). Absent for a queue of no provider. */
  provider?: string;
}

/** Where a Proxy's jobs go: a provider that is not configured has no consumer of its own. */
export function reconcileQueue(provider: string, isConfigured: boolean): QueueRef {
  return isConfigured ? { fn: "reconcile", provider } : { fn: "reconcile" };
}

/** `reconcile.<provider>`, or `reconcile`. */
export function queueName(queue: QueueRef): string {
  return queue.provider === undefined ? queue.fn : `${queue.fn}.${queue.provider}`;
}

/** `<prefix>:<name>`: how a queue's Redis keys begin, and its entry in `keys.queues`. */
export function queueMember(queue: QueueRef): string {
  return `${queuePrefix(queue.provider)}:${queueName(queue)}`;
}

/** The reverse of `queueMember`; undefined for what this version does not know. */
export function parseQueueMember(entry: string): QueueRef | undefined {
  const [name = "", provider] = entry.slice(entry.indexOf("}:") + 2).split(".");
  const fn = jobFunctions.find((known) => known === name);
  if (fn === undefined) return undefined;
  const queue = provider === undefined ? { fn } : { fn, provider };
  return queueMember(queue) === entry ? queue : undefined;
}

/** Every queue that anybody enqueued to since Redis was last emptied. */
export async function listQueues(redis: RedisClient): Promise<QueueRef[]> {
  const entries = await redis.smembers(keys.queues);
  return entries.sort().flatMap((entry) => parseQueueMember(entry) ?? []);
}
