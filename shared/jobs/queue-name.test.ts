import { expect, test } from "vitest";
import { keys } from "#shared/model/keys.ts";
import { lab, startJobRig } from "#test/integration/jobs/rig.ts";
import { listQueues, parseQueueMember, queueMember } from "./queue-name.ts";

test.each([
  [{ fn: "reconcile", provider: "lab-1" }, "{ep:q:lab-1}:reconcile.lab-1"],
  [{ fn: "reconcile" }, "{ep:q}:reconcile"],
  [{ fn: "provider-check", provider: "lab" }, "{ep:q:lab}:provider-check.lab"],
  [{ fn: "lease" }, "{ep:q}:lease"],
] as const)("%j is listed as %s, and read back", (queue, member) => {
  expect(queueMember(queue)).toBe(member);
  expect(parseQueueMember(member)).toEqual(queue);
});

test.each(["", "lease", "{ep:q}:other", "{ep:q:lab}:reconcile", "{ep:q}:reconcile.lab", "{ep:q:a}:reconcile.b"])(
  "%j is no queue of ours",
  (entry) => {
    expect(parseQueueMember(entry)).toBeUndefined();
  },
);

test("every queue that was enqueued to is listed, unknown entries are not", async () => {
  const { redis, producer } = await startJobRig();
  await producer.enqueue(lab, "ns/a");
  await producer.enqueue({ fn: "lease" }, "reap");
  await redis.sadd(keys.queues, "{ep:q}:of-a-newer-version");
  expect(await listQueues(redis)).toEqual([lab, { fn: "lease" }]);
});
