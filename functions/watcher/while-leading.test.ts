import { expect, test } from "vitest";
import { whileLeading } from "./while-leading.ts";

test("who leads no longer enqueues nothing", async () => {
  const added: string[] = [];
  let leads = true;
  const add = (what: string) => Promise.resolve(void added.push(what));
  const producer = whileLeading({ enqueue: () => add("one"), enqueueMany: () => add("many") }, () => {
    if (!leads) throw new Error("it leads no longer");
  });
  await producer.enqueue({ fn: "lease" }, "reap");
  await producer.enqueueMany({ fn: "lease" }, [{ key: "reap" }]);
  leads = false;
  await expect(producer.enqueue({ fn: "lease" }, "reap")).rejects.toThrow("leads no longer");
  await expect(producer.enqueueMany({ fn: "lease" }, [{ key: "reap" }])).rejects.toThrow("leads no longer");
  expect(added).toEqual(["one", "many"]);
});
