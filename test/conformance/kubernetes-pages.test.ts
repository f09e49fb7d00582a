import { CoreV1Api } from "@kubernetes/client-node";
import { expect, onTestFinished, test } from "vitest";
import { podCluster } from "#shared/provider/kubernetes/objects.ts";
import { startApi } from "./kubernetes-backend.ts";

test("a list of several pages is read to its end, in one namespace and in all", async () => {
  const { connection, stop } = await startApi();
  onTestFinished(stop);
  let requests = 0;
  const call = { signal: AbortSignal.timeout(20_000) };
  const { pods, secrets } = podCluster((its) => {
    requests += 1;
    return connection.api(CoreV1Api, its);
  }, 2);
  const names = ["a", "b", "c", "d", "e"];
  for (const name of names) {
    const metadata = { name, labels: { mine: "true" } };
    await pods.create("default", { metadata, spec: { containers: [{ name: "main", image: "i" }] } }, call);
    await secrets.create("default", { metadata }, call);
  }
  await secrets.create("default", { metadata: { name: "other" } }, call);
  requests = 0;
  for (const objects of [pods, secrets]) {
    for (const namespace of ["default", undefined]) {
      const listed = await objects.list(namespace, "mine=true", call);
      expect(listed.map((one) => one.metadata?.name)).toEqual(names);
    }
  }
  expect(requests).toBe(12);
});
