import type { Effect } from "#shared/domain/plan-reconcile.ts";
import { isProvisioned, recordedInstances, rememberedVerdict, type Situation } from "#shared/domain/situation.ts";
import type { Fleet } from "#shared/fleet/fleet.ts";
import type { FleetEntry } from "#shared/fleet/fleet-entry.ts";
import { member } from "#shared/model/keys.ts";
import type { SecretValues } from "./secret-values.ts";

/**
 * Tells the registry what may be probed and leased. Before the effect, so that an incarnation that is to be deleted or
 * replaced takes no lease from now on; in every run, so that an emptied Redis fills up again.
 */
export async function register(
  situation: Situation,
  effects: Effect[],
  values: SecretValues | undefined,
  fleet: Pick<Fleet, "upsert" | "remove">,
  fence: number,
): Promise<void> {
  const { proxy, view } = situation;
  const deleting = proxy.metadata.deletionTimestamp !== undefined;
  const dead =
    view.kind === "absent" || (view.kind === "seen" && view.state !== "Running" && view.state !== "Provisioning");
  if (deleting || dead || effects[0]?.kind === "record-intent") {
    for (const { incarnation } of recordedInstances(proxy.status))
      await fleet.remove(member(proxy.metadata.uid, incarnation), fence);
    return;
  }
  const entry = entryOf(situation, values);
  if (entry !== undefined) await fleet.upsert(entry, fence);
}

/** Undefined while it does not run, or where a missing Secret hides its credentials: what is registered then stays. */
function entryOf({ proxy, view }: Situation, values: SecretValues | undefined): FleetEntry | undefined {
  const { metadata, spec, status } = proxy;
  const host = view.kind === "seen" ? view.ip : isProvisioned(status) ? status.endpoint?.host : undefined;
  if (status.instance === undefined || host === undefined || values === undefined) return undefined;
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    uid: metadata.uid,
    incarnation: status.instance.incarnation,
    provider: spec.provider,
    region: spec.placement?.region ?? "",
    zone: status.instance.zone,
    host,
    port: spec.port,
    egressIP: "",
    labels: metadata.labels,
    credentials: values.auth,
    probe: spec.healthCheck,
    max: spec.maxLeases,
    draining: false,
    seed: rememberedVerdict(status),
  };
}
