import { Failure } from "#shared/errors/failure.ts";
import type {
  Call,
  Created,
  CreateRequest,
  Identity,
  Instance,
  Listing,
  Owner,
  PlacementRequest,
  Provider,
} from "#shared/provider/contract.ts";
import { Faults, type Operation } from "./faults.ts";
import { MemoryBackend, type MemoryDisk, type MemoryInstance } from "./memory-backend.ts";

export interface MemoryProviderOptions {
  name?: string;
  /** Shared by two providers that stand for two installations. */
  backend?: MemoryBackend;
  /** The first is the default of `place`; a zone outside is refused. */
  zones?: string[];
  /** How often `get` says Provisioning before an instance runs. */
  polls?: number;
  /** How often `delete` answers "going" before the instance is gone. */
  deletePolls?: number;
  /** `list` shows only resources of this installation; undefined: of all. */
  installation?: string;
  now?: () => Date;
}

/**
 * A provider without a cloud that keeps the whole contract, for tests of whatever uses a provider. `faults` makes its
 * calls fail, hang or lose their answer; `backend` is the truth that tests look at.
 */
export class MemoryProvider implements Provider {
  readonly name: string;
  readonly type = "memory";
  readonly backend: MemoryBackend;
  readonly faults: Faults;
  /** Set to make `list` admit that it could not read everything. */
  incomplete = false;
  readonly #zones: string[];
  readonly #polls: number;
  readonly #deletePolls: number;
  readonly #installation: string | undefined;
  readonly #now: () => Date;

  constructor(options: MemoryProviderOptions = {}) {
    this.name = options.name ?? "memory";
    this.backend = options.backend ?? new MemoryBackend();
    this.#zones = options.zones ?? ["zone-a", "zone-b"];
    this.#polls = options.polls ?? 1;
    this.#deletePolls = options.deletePolls ?? 1;
    this.#installation = options.installation;
    this.#now = options.now ?? (() => new Date());
    this.faults = new Faults(this.name);
  }

  /** Instances by name; names are unique in tests that use one zone. */
  get instances(): Map<string, MemoryInstance> {
    return new Map([...this.backend.instances.values()].map((instance) => [instance.name, instance]));
  }

  get calls(): Faults["calls"] {
    return this.faults.calls;
  }

  /** The next call of `op` throws this, without effect ("before") or after its effect ("after": the answer is lost). */
  failNext(op: Operation, failure: Failure, when: "before" | "after" = "before"): void {
    this.faults.failNext(op, failure, when);
  }

  /** The instance stops by itself, as when it crashed or was preempted. */
  stop(name: string, message = "stopped by the test"): void {
    Object.assign(this.#only(name), { state: "Stopped", message });
  }

  /** The instance disappears behind our back; its disk stays. */
  vanish(name: string): void {
    const { zone } = this.#only(name);
    this.backend.instances.delete(`${zone}/${name}`);
  }

  /** Somebody else's instance under a name of ours. */
  addForeign(name: string, owner: Partial<Owner> = {}, zone = this.#defaultZone()): MemoryInstance {
    const foreign: MemoryInstance = {
      name,
      namespace: "elsewhere",
      zone,
      uid: owner.uid ?? "",
      incarnation: owner.incarnation ?? 0,
      installation: owner.installation ?? "",
      state: "Running",
      ip: this.backend.nextAddress(),
      port: 1,
      createdAt: this.#now(),
      pollsUntilRunning: 0,
    };
    this.backend.instances.set(`${zone}/${name}`, foreign);
    return foreign;
  }

  place({ placement }: PlacementRequest): string {
    const zone = placement.zone ?? this.#defaultZone();
    if (this.#zones.includes(zone)) return zone;
    throw this.#failure("Permanent", "InvalidPlacement", "place", `placement.zone: no zone ${zone}`);
  }

  async create(request: CreateRequest, call: Call): Promise<Created> {
    return this.faults.run("create", request.name, call, async () => {
      const key = `${this.#configured(request.zone, "create")}/${request.name}`;
      const providerID = `memory/${key}`;
      const { uid, incarnation, installation, name, namespace, zone, port } = request;
      const owner = { uid, incarnation, installation };
      const existing = await this.backend.step("read instance", () => this.backend.instances.get(key));
      if (existing !== undefined) {
        if (sameOwner(existing, owner)) return { providerID };
        throw this.#failure("Permanent", "NameConflict", "create", `${key} exists and is not ours`);
      }
      await this.backend.step("create disk", () => {
        if (!this.backend.disks.has(key))
          this.backend.disks.set(key, { ...owner, instanceName: name, namespace, zone });
      });
      await this.backend.step("create instance", () => {
        // A concurrent create of the same name may have been faster: the backend keeps names unique.
        if (this.backend.instances.has(key)) return;
        const ip = this.backend.nextAddress();
        const started = { state: "Provisioning" as const, ip, createdAt: this.#now(), pollsUntilRunning: this.#polls };
        this.backend.instances.set(key, { ...owner, ...started, name, namespace, zone, port });
      });
      return { providerID };
    });
  }

  async get(providerID: string, call: Call): Promise<Instance> {
    return this.faults.run("get", providerID, call, async () => {
      const key = this.#key(providerID, "get");
      const found = await this.backend.step("read instance", () => this.backend.instances.get(key));
      if (found === undefined) throw this.#failure("NotFound", "InstanceNotFound", "get", `no instance ${key}`);
      if (found.state === "Provisioning" && found.pollsUntilRunning-- <= 0) found.state = "Running";
      return this.#instance(found);
    });
  }

  async delete(identity: Identity, call: Call): Promise<"done" | "going"> {
    return this.faults.run("delete", identity.name, call, async () => {
      const keys =
        identity.providerID === undefined ? this.#search(identity) : [this.#key(identity.providerID, "delete")];
      let going = false;
      for (const key of keys) going = (await this.#deleteOne(key, identity)) || going;
      return going ? "going" : "done";
    });
  }

  async list(call: Call): Promise<Listing> {
    return this.faults.run("list", "", call, async () => {
      const instances = await this.backend.step("list instances", () => [...this.backend.instances.values()]);
      const disks = await this.backend.step("list disks", () => [...this.backend.disks.entries()]);
      return {
        instances: instances.filter((one) => this.#isOurs(one)).map((one) => this.#instance(one)),
        resources: disks
          .filter(([, disk]) => this.#isOurs(disk))
          .map(([key, disk]) => ({ ...disk, kind: "Disk", providerID: `memory/${key}` })),
        complete: !this.incomplete,
      };
    });
  }

  async close(): Promise<void> {
    this.faults.close();
  }

  /** Whether the instance is still going. The disk goes last, as a disk in use cannot be deleted. */
  async #deleteOne(key: string, owner: Owner): Promise<boolean> {
    const found = await this.backend.step("read instance", () => this.backend.instances.get(key));
    if (found !== undefined && sameOwner(found, owner)) {
      const left = found.pollsUntilGone ?? this.#deletePolls;
      await this.backend.step("delete instance", () => {
        found.pollsUntilGone = left - 1;
        if (left <= 0) this.backend.instances.delete(key);
      });
      if (left > 0) return true;
    }
    const disk = await this.backend.step("read disk", () => this.backend.disks.get(key));
    if (disk === undefined || !sameOwner(disk, owner)) return false;
    await this.backend.step("delete disk", () => this.backend.disks.delete(key));
    return false;
  }

  #search(identity: Identity): string[] {
    const zones = identity.zone === undefined ? this.#zones : [this.#configured(identity.zone, "delete")];
    return zones.map((zone) => `${zone}/${identity.name}`);
  }

  #key(providerID: string, op: Operation): string {
    const [, zone, name] = /^memory\/([^/]+)\/([^/]+)$/.exec(providerID) ?? [];
    if (zone !== undefined && name !== undefined) return `${this.#configured(zone, op)}/${name}`;
    throw this.#failure("Permanent", "MalformedID", op, `not an id of this provider: ${providerID}`);
  }

  /** A zone that left the config is an error that names it: what is in it is not "gone". */
  #configured(zone: string, op: Operation): string {
    if (this.#zones.includes(zone)) return zone;
    throw this.#failure("Permanent", "ZoneNotConfigured", op, `zone ${zone} is not configured any more`);
  }

  #instance(found: MemoryInstance): Instance {
    const { name, uid, incarnation, installation, state, createdAt, zone, message } = found;
    const ip = state === "Running" ? found.ip : undefined;
    const providerID = `memory/${zone}/${name}`;
    return { providerID, name, uid, incarnation, installation, state, ip, createdAt, zone, message };
  }

  #isOurs(owner: MemoryInstance | MemoryDisk): boolean {
    return owner.installation !== "" && (this.#installation ?? owner.installation) === owner.installation;
  }

  #only(name: string): MemoryInstance {
    const found = this.instances.get(name);
    if (found === undefined) throw new Error(`the backend has no instance ${name}`);
    return found;
  }

  #defaultZone(): string {
    return this.#zones[0] ?? "zone-a";
  }

  #failure(failureClass: Failure["class"], code: string, op: string, message: string): Failure {
    return new Failure({ class: failureClass, code, op, provider: this.name, message });
  }
}

function sameOwner(a: Owner, b: Owner): boolean {
  return a.uid === b.uid && a.incarnation === b.incarnation && a.installation === b.installation;
}
