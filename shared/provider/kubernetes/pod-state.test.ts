import type { V1ContainerState, V1PodCondition, V1PodStatus } from "@kubernetes/client-node";
import { expect, test } from "vitest";
import { podState } from "./pod-state.ts";

type More = { podIP?: string; reason?: string; message?: string; conditions?: V1PodCondition[] };

function status(phase: string | undefined, squid?: V1ContainerState, more: More = {}): V1PodStatus {
  const containerStatuses = [
    { name: "squid", image: "", imageID: "", ready: true, restartCount: 0, state: squid ?? {} },
  ];
  return { ...(phase === undefined ? {} : { phase }), ...(squid === undefined ? {} : { containerStatuses }), ...more };
}
const running = { running: { startedAt: new Date(0) } };
const ended = { terminated: { exitCode: 137, reason: "OOMKilled" } };
const unscheduled = [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/3 nodes" }];

test.each([
  ["just made", status(undefined), { state: "Provisioning" }],
  [
    "waiting for a node",
    status("Pending", undefined, { conditions: unscheduled }),
    { state: "Provisioning", message: "Unschedulable: 0/3 nodes" },
  ],
  [
    "waiting for its image",
    status("Pending", { waiting: { reason: "ImagePullBackOff" } }),
    { state: "Provisioning", message: "ImagePullBackOff" },
  ],
  ["on its way", status("Pending", { waiting: { reason: "ContainerCreating" } }), { state: "Provisioning" }],
  ["running with an address", status("Running", running, { podIP: "10.0.0.7" }), { state: "Running", ip: "10.0.0.7" }],
  ["running without an address", status("Running", running), { state: "Provisioning" }],
  [
    "running without a word of the container",
    status("Running", undefined, { podIP: "10.0.0.7" }),
    { state: "Provisioning" },
  ],
  [
    "running while its container has ended",
    status("Running", ended, { podIP: "10.0.0.7" }),
    { state: "Stopped", message: "squid ended: OOMKilled (exit code 137)" },
  ],
  ["failed", status("Failed", ended), { state: "Stopped", message: "squid ended: OOMKilled (exit code 137)" }],
  [
    "evicted",
    status("Failed", undefined, { reason: "Evicted", message: "low on memory" }),
    { state: "Stopped", message: "Evicted: low on memory" },
  ],
  ["ended well", status("Succeeded"), { state: "Stopped", message: "the Pod's phase is Succeeded" }],
  ["on a node that does not answer", status("Unknown"), { state: "Stopped", message: "the Pod's phase is Unknown" }],
  ["in a phase of the future", status("Hibernating"), { state: "Stopped", message: "the Pod's phase is Hibernating" }],
])("a Pod that is %s", (_, podStatus, expected) => {
  expect(podState({ status: podStatus })).toEqual(expected);
});

test("a Pod that is being deleted counts as stopped, whatever its phase", () => {
  const metadata = { deletionTimestamp: new Date(0) };
  expect(podState({ metadata, status: status("Running", running, { podIP: "10.0.0.7" }) })).toMatchObject({
    state: "Stopped",
  });
});
