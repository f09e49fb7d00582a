import { badRequest, conflict } from "./api-error.ts";
import type { ApiState } from "./api-state.ts";
import { objectAt } from "./json.ts";
import { findObject, type Target } from "./request.ts";
import { type SentObject, timestamp } from "./stored-object.ts";

/** Puts a Pod on a node, as a scheduler does. Throws 409 when it is on one already, or is being deleted. */
export function bindPod(api: ApiState, target: Target, binding: SentObject): void {
  const pod = findObject(api, target);
  const nodeName = objectAt(binding, "target")["name"];
  if (typeof nodeName !== "string" || nodeName === "") throw badRequest("target.name: Required value");
  const spec = objectAt(pod, "spec");
  if (pod.metadata.deletionTimestamp !== undefined)
    throw conflict(
      target.kind,
      pod.metadata.name,
      `pod ${pod.metadata.name} is being deleted, cannot be assigned to a host`,
    );
  if (typeof spec["nodeName"] === "string")
    throw conflict(
      target.kind,
      pod.metadata.name,
      `pod ${pod.metadata.name} is already assigned to node "${spec["nodeName"]}"`,
    );
  const scheduled = { type: "PodScheduled", status: "True", lastTransitionTime: timestamp(api.now()) };
  const status = { ...objectAt(pod, "status"), conditions: [scheduled] };
  api.store.put(target.kind.storeKey, { ...pod, spec: { ...spec, nodeName }, status });
}
