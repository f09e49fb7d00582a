import type { Credentials } from "#shared/model/registry-record.ts";

/**
 * What a provider must do. The core knows only this contract, never a type of provider.
 * MUST: breaking it breaks a caller, who is named. Every failure is a `Failure` (shared/errors).
 */
export interface Provider {
  /** Configured name; unique. */
  readonly name: string;
  readonly type: string;
  /** How often a pending or deleting instance is worth reading, in milliseconds; PENDING_POLL_SECONDS when absent. */
  readonly pendingPollMs?: number;

  /**
   * The zone (or host) for a request. Pure: no I/O, the same answer for the same config.
   * Throws Permanent, naming field and value, for what can never work: before anything is begun, so that a running
   * instance is not given up for a successor that cannot be.
   */
  place(request: PlacementRequest): string;

  /**
   * Starts one instance for `request.name` in `request.zone`, with all marks on it from the first moment.
   * MUST be idempotent by name: a repeat returns the same instance and makes nothing new; reconcile repeats it after
   * every crash. MUST refuse a foreign instance of that name with `NameConflict` (Permanent), untouched.
   * MUST resume cleanly after being cut off at any step. MUST NOT return NotFound.
   */
  create(request: CreateRequest, call: Call): Promise<Created>;

  /**
   * Reads an instance. MUST throw NotFound when, and only when, it is proven gone: reconcile would create again.
   * MUST report Running only with an ip, and never Stopped for what was created but not started yet.
   */
  get(providerID: string, call: Call): Promise<Instance>;

  /**
   * Removes an instance and everything `create` made. MUST be idempotent, MUST verify the marks before it destroys
   * anything, MUST work from name and zone, or from the name alone, when no id was ever recorded.
   */
  delete(identity: Identity, call: Call): Promise<"done" | "going">;

  /**
   * Every instance and secondary resource marked as ours, with ids that `delete` accepts. MUST say `complete: false`
   * when any part of the scope could not be read: nobody then concludes that something is absent.
   */
  list(call: Call): Promise<Listing>;

  /** Ends connections and timers. Calls after it fail. */
  close(): Promise<void>;
}

/** Deadline and cancellation of one call, set by the caller; the call MUST return promptly once it fires. */
export interface Call {
  signal: AbortSignal;
}

interface Placement {
  region?: string | undefined;
  zone?: string | undefined;
  machineType?: string | undefined;
  image?: string | undefined;
}

/** What a provider must know to tell whether an instance is possible at all. No secret is part of it. */
export interface PlacementRequest {
  placement: Placement;
  port: number;
  /** Whether the proxy asks its clients for credentials. */
  hasAuth: boolean;
}

/** Who an instance belongs to: on the backend these are the marks. */
export interface Owner {
  uid: string;
  incarnation: number;
  installation: string;
}

export interface CreateRequest extends Owner, Omit<PlacementRequest, "hasAuth"> {
  /** Instance name: never used twice, see `instanceName` in shared/domain. */
  name: string;
  /** From the recorded intent, never again from the config. */
  zone: string;
  namespace: string;
  proxyName: string;
  port: number;
  /** Delivered byte for byte as user-data, or documented as ignored. Never logged. */
  cloudInit?: Uint8Array | undefined;
  auth?: Credentials | undefined;
}

export interface Created {
  /** Alone enough for get and delete, whatever the config says later. */
  providerID: string;
  /** Handle of an asynchronous create, to be polled. */
  operationID?: string | undefined;
}

export type InstanceState = "Provisioning" | "Running" | "Stopped" | "Terminated";

export interface Instance extends Owner {
  providerID: string;
  name: string;
  state: InstanceState;
  /** Where the proxy listens; always there when Running. */
  ip?: string | undefined;
  createdAt: Date;
  zone: string;
  /** Why an asynchronous create failed, or a word on why it stopped. */
  message?: string | undefined;
}

export interface Identity extends Owner {
  name: string;
  namespace: string;
  /** Undefined: the answer to create was lost; find it by name. */
  providerID?: string | undefined;
  zone?: string | undefined;
}

export interface Listing {
  instances: Instance[];
  /** Secondary resources (disks, Secrets) whose instance may be gone. */
  resources: SecondaryResource[];
  complete: boolean;
}

export interface SecondaryResource extends Owner {
  /** e.g. `Secret`. */
  kind: string;
  /** Name of the instance it was made for. */
  instanceName: string;
  providerID: string;
  namespace: string;
}
