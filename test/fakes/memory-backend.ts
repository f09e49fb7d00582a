import type { InstanceState, Owner } from "#shared/provider/contract.ts";

/** An instance as the backend knows it; tests read and change it freely. */
export interface MemoryInstance extends Owner {
  name: string;
  namespace: string;
  zone: string;
  /** Undefined: not started yet; becomes Running by itself, see `pollsUntilRunning`. */
  state: InstanceState;
  ip: string;
  port: number;
  createdAt: Date;
  message?: string | undefined;
  /** Reads left until it runs. */
  pollsUntilRunning: number;
  /** Calls of delete left that answer "going"; undefined: nobody deletes it. */
  pollsUntilGone?: number | undefined;
}

/** A secondary resource, made before its instance and removed after it. */
export interface MemoryDisk extends Owner {
  instanceName: string;
  namespace: string;
  zone: string;
}

/** Called around each step that changes or reads the backend; throwing cuts the provider off right there. */
export type StepHook = (step: { number: number; what: string; when: "before" | "after" }) => void | Promise<void>;

/**
 * The cloud behind a `MemoryProvider`: a map of instances and one of disks. Several providers may share one, as two
 * installations share a project. Keys are `<zone>/<name>`.
 */
export class MemoryBackend {
  readonly instances = new Map<string, MemoryInstance>();
  readonly disks = new Map<string, MemoryDisk>();
  /** Set by a test to cut calls off, slow them down or watch them. */
  onStep: StepHook | undefined;
  #steps = 0;
  #addresses = 0;

  /** Backend calls so far. */
  get steps(): number {
    return this.#steps;
  }

  /** Runs one backend call. Its effect stays when the hook throws after it, as with an answer that was lost. */
  async step<T>(what: string, effect: () => T): Promise<T> {
    const number = ++this.#steps;
    await this.onStep?.({ number, what, when: "before" });
    const result = effect();
    await this.onStep?.({ number, what, when: "after" });
    return result;
  }

  nextAddress(): string {
    this.#addresses += 1;
    return `10.${(this.#addresses >> 16) & 255}.${(this.#addresses >> 8) & 255}.${this.#addresses & 255}`;
  }
}
