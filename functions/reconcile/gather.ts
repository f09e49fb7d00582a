import type { ClusterCall } from "#shared/cluster/deadline.ts";
import type { SecretReader } from "#shared/cluster/secrets.ts";
import {
  type InstanceView,
  needsRead,
  rememberedVerdict,
  type Situation,
  type Verdict,
} from "#shared/domain/situation.ts";
import { specHash } from "#shared/domain/spec-hash.ts";
import { isNotFound, toFailure } from "#shared/errors/failure.ts";
import type { Fleet } from "#shared/fleet/fleet.ts";
import { member } from "#shared/model/keys.ts";
import { finalizer } from "#shared/model/names.ts";
import type { Proxy } from "#shared/model/proxy.ts";
import type { Provider } from "#shared/provider/contract.ts";
import { readSecretValues, type SecretValues } from "./secret-values.ts";

export interface GatherDeps {
  secrets: Pick<SecretReader, "read">;
  fleet: Pick<Fleet, "look">;
  installation: { id: string; hashKey: Uint8Array };
  now: () => Date;
}

export interface Gathered {
  situation: Situation;
  /** Undefined where a Secret is missing. */
  values: SecretValues | undefined;
}

/** Reads all that a run has to know. Changes nothing. */
export async function gather(
  proxy: Proxy,
  provider: Provider | undefined,
  deps: GatherDeps,
  call: ClusterCall,
): Promise<Gathered> {
  const values = needsSecrets(proxy) ? await readSecretValues(proxy, deps.secrets, call) : noValues;
  const registry = await readRegistry(proxy, deps.fleet);
  const view = await readInstance(proxy, provider, registry.verdict, call);
  const situation: Situation = {
    proxy,
    now: deps.now(),
    installation: deps.installation.id,
    configured: provider !== undefined,
    wanted: "failure" in values ? values : { specHash: hashOf(proxy, values, deps.installation.hashKey) },
    place: provider && placeOf(proxy, provider),
    view,
    ...registry,
  };
  return { situation, values: "failure" in values ? undefined : values };
}

/** A deletion needs none: one that cannot be read must not hold it back. Neither does the run that adds the finalizer. */
function needsSecrets({ metadata }: Proxy): boolean {
  return metadata.deletionTimestamp === undefined && metadata.finalizers.includes(finalizer);
}

const noValues: SecretValues = { auth: undefined, cloudInit: undefined };

function hashOf({ spec }: Proxy, values: SecretValues, key: Uint8Array): string {
  return specHash({ placement: spec.placement, port: spec.port, ...values }, key);
}

function placeOf({ spec }: Proxy, provider: Provider): NonNullable<Situation["place"]> {
  try {
    const { placement = {}, port, auth } = spec;
    return { zone: provider.place({ placement, port, hasAuth: auth !== undefined }) };
  } catch (error) {
    return { failure: toFailure(error) };
  }
}

/** Redis knows best; where it was emptied, the status remembers. */
async function readRegistry(
  { metadata, status }: Proxy,
  fleet: GatherDeps["fleet"],
): Promise<Pick<Situation, "registered" | "verdict" | "trouble">> {
  if (status.instance === undefined) return { registered: false, verdict: undefined };
  const seen = await fleet.look(member(metadata.uid, status.instance.incarnation));
  return { ...seen, verdict: seen.verdict ?? rememberedVerdict(status) };
}

async function readInstance(
  proxy: Proxy,
  provider: Provider | undefined,
  verdict: Verdict | undefined,
  call: ClusterCall,
): Promise<InstanceView> {
  const { instance } = proxy.status;
  if (instance?.providerID === undefined) return { kind: "none" };
  if (provider === undefined || !needsRead(proxy, verdict)) return { kind: "unread" };
  try {
    const { state, ip, createdAt, message } = await provider.get(instance.providerID, call);
    return {
      kind: "seen",
      state,
      createdAt,
      ...(ip === undefined ? {} : { ip }),
      ...(message === undefined ? {} : { message }),
    };
  } catch (error) {
    return isNotFound(error) ? { kind: "absent" } : { kind: "unknown", failure: toFailure(error) };
  }
}
