import type { Effect } from "#shared/domain/plan-reconcile.ts";
import {
  isAsWanted,
  isDead,
  isProvisioned,
  recordedInstances,
  rememberedVerdict,
  type Situation,
} from "#shared/domain/situation.ts";
import type { Fleet } from "#shared/fleet/fleet.ts";
import type { FleetAmendment } from "#shared/fleet/fleet-entry.ts";
import type { Fence } from "#shared/jobs/fence.ts";
import { member } from "#shared/model/keys.ts";
import { type Proxy, proxyKey } from "#shared/model/proxy.ts";
import type { SecretValues } from "./secret-values.ts";

/**
 * Tells the registry what may be probed and leased: the current incarnation alone, and nothing else of that name. Before
 * the effect, so that an incarnation that is to be deleted or replaced takes no lease from now on; in every run, so that
 * an emptied Redis fills up again. The fence is checked here, too: an emptied Redis has forgotten the newer token that
 * would refuse a late write.
 */
export async function register(
  situation: Situation,
  effects: Effect[],
  values: SecretValues | undefined,
  fleet: Pick<Fleet, "upsert" | "amend" | "keepOnly">,
  fence: Pick<Fence, "token" | "check">,
): Promise<void> {
  const { proxy, view } = situation;
  const leaves = proxy.metadata.deletionTimestamp !== undefined || isDead(view) || effects[0]?.kind === "record-intent";
  const recorded = recordedInstances(proxy.status).map(({ incarnation }) => member(proxy.metadata.uid, incarnation));
  const stays = leaves || proxy.status.instance === undefined ? undefined : recorded[0];
  const gone = recorded.filter((id) => id !== stays);
  await fence.check();
  await fleet.keepOnly(proxyKey(proxy), stays, gone, fence.token);
  const entry = stays && entryOf(situation);
  if (entry === undefined) return;
  // What it was made with is known only while the spec still says it. Otherwise what is registered of that stays.
  if (values !== undefined && isAsWanted(situation) === true) {
    await fleet.upsert({ ...entry, ...madeWith(proxy, values) }, fence.token);
  } else await fleet.amend(entry, fence.token);
}

/** Undefined while it does not run. */
function entryOf({ proxy, view }: Situation): FleetAmendment | undefined {
  const { metadata, spec, status } = proxy;
  const host = view.kind === "seen" ? view.ip : isProvisioned(status) ? status.endpoint?.host : undefined;
  if (status.instance === undefined || host === undefined) return undefined;
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    uid: metadata.uid,
    incarnation: status.instance.incarnation,
    provider: spec.provider,
    zone: status.instance.zone,
    host,
    egressIP: "",
    labels: metadata.labels,
    probe: spec.healthCheck,
    max: spec.maxLeases,
    draining: false,
    seed: rememberedVerdict(status),
  };
}

function madeWith({ spec }: Proxy, { auth }: SecretValues) {
  return { port: spec.port, credentials: auth, region: spec.placement?.region ?? "" };
}
