import type { CreateRequest, Provider } from "#shared/provider/contract.ts";
import type { ProviderCall } from "#shared/provider/decorators/metrics.ts";

/** Told around each call to the backend: a throw or a promise that stays open is what the provider gets. */
export type CallHook = (call: { number: number; when: "before" | "after" }) => void | Promise<void>;

/** What the provider under test told others; no secret may be in it. */
export interface Told {
  calls: ProviderCall[];
  logs: unknown[];
}

/** The backend that a provider is tested against, and the hands that change it behind the provider's back. */
export interface ConformanceBackend {
  /** A provider as production makes it, decorated, that works for one installation. */
  provider(installation: string, told: Told): Provider;
  /** A Proxy that exists, as the owner of instances. */
  owner(): Promise<Pick<CreateRequest, "uid" | "namespace" | "proxyName">>;
  /** Set and unset by a test; counts from 1 anew whenever it is set. */
  hook(hook: CallHook | undefined): void;
  /** The instance gets an address and runs. */
  run(request: CreateRequest): Promise<void>;
  /** It stops by itself. */
  halt(request: CreateRequest): Promise<void>;
  /** It gets into a state that the provider has no name for. */
  confuse(request: CreateRequest): Promise<void>;
  /** It disappears; what belongs to it may stay. */
  vanish(request: CreateRequest): Promise<void>;
  /** A deletion takes time from now on, until `finishDeletion`. */
  slowDeletion(request: CreateRequest): Promise<void>;
  finishDeletion(request: CreateRequest): Promise<void>;
  /** Somebody else's instance under this name; with `marks`, marked as these say, which need not be valid. */
  foreign(request: CreateRequest, marks?: { uid: string; incarnation: number; installation: string }): Promise<void>;
  /** Every instance and secondary resource of this name, whoever owns it, e.g. `Pod proxy-1`. */
  everything(name: string): Promise<string[]>;
  /** The next listing cannot read a part of the scope. Undefined where there is only one part. */
  breakPartOfList?: (() => void) | undefined;
  /** Ids that are not of this provider. */
  malformedIDs: string[];
  /** What `place` refuses for good; undefined where nothing is. */
  impossiblePlacement?: { zone: string } | undefined;
  stop(): Promise<void>;
}
