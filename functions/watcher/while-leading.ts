import type { Producer } from "#shared/jobs/producer.ts";

/**
 * A producer that only the leader can use: `check` throws once this process leads no longer. Asked right before each
 * call, since a process that stood still wakes up in the middle of its work.
 */
export function whileLeading(
  producer: Pick<Producer, "enqueue" | "enqueueMany">,
  check: () => void,
): Pick<Producer, "enqueue" | "enqueueMany"> {
  return {
    enqueue: async (queue, key, options) => {
      check();
      await producer.enqueue(queue, key, options);
    },
    enqueueMany: async (queue, items) => {
      check();
      await producer.enqueueMany(queue, items);
    },
  };
}
