import { CoordinationV1Api, type V1Lease, V1MicroTime } from "@kubernetes/client-node";
import { isNotFound } from "#shared/errors/failure.ts";
import type { ClusterConnection } from "./connection.ts";
import type { ClusterCall } from "./deadline.ts";

/** What a Lease object says. Two records are the same reading when their `resourceVersion` is. */
export interface LeaseRecord {
  /** Empty: nobody, it was given back. */
  holder: string;
  /** How long the holder's word counts without a renewal. */
  durationMs: number;
  /** How often the holder changed. */
  transitions: number;
  resourceVersion: string;
}

export interface LeaderLeaseDeps {
  connection: ClusterConnection;
  namespace: string;
  name: string;
  now?: () => Date;
}

/** One Lease object of coordination.k8s.io: who leads. Its methods reject with Failures. */
export class LeaderLease {
  readonly #deps: LeaderLeaseDeps;

  constructor(deps: LeaderLeaseDeps) {
    this.#deps = deps;
  }

  /** Undefined where there is none yet. */
  async read(call: ClusterCall): Promise<LeaseRecord | undefined> {
    const { namespace, name } = this.#deps;
    try {
      return recordOf(await this.#api(call).readNamespacedLease({ namespace, name }));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /**
   * Makes `holder` the holder, or renews its word; an empty one gives the Lease back. Rejects with `Conflict` or
   * `AlreadyExists` when it is not what it was when it was read.
   */
  async write(
    { holder, durationMs }: Pick<LeaseRecord, "holder" | "durationMs">,
    before: LeaseRecord | undefined,
    call: ClusterCall,
  ): Promise<LeaseRecord> {
    const { namespace, name, now = () => new Date() } = this.#deps;
    const changesHands = before?.holder !== holder;
    const time = new V1MicroTime(now());
    const body: V1Lease = {
      metadata: { name, ...(before === undefined ? {} : { resourceVersion: before.resourceVersion }) },
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: Math.max(1, Math.round(durationMs / 1000)),
        leaseTransitions: (before?.transitions ?? 0) + (changesHands && holder !== "" ? 1 : 0),
        renewTime: time,
        ...(changesHands ? { acquireTime: time } : {}),
      },
    };
    const api = this.#api(call);
    return recordOf(
      before === undefined
        ? await api.createNamespacedLease({ namespace, body })
        : await api.replaceNamespacedLease({ namespace, name, body }),
    );
  }

  #api(call: ClusterCall): CoordinationV1Api {
    return this.#deps.connection.api(CoordinationV1Api, call);
  }
}

function recordOf({ metadata, spec }: V1Lease): LeaseRecord {
  return {
    holder: spec?.holderIdentity ?? "",
    durationMs: (spec?.leaseDurationSeconds ?? 0) * 1000,
    transitions: spec?.leaseTransitions ?? 0,
    resourceVersion: metadata?.resourceVersion ?? "",
  };
}
