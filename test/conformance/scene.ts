import { expect } from "vitest";
import { Failure } from "#shared/errors/failure.ts";
import type { Call, CreateRequest, Identity, Provider } from "#shared/provider/contract.ts";
import type { CallHook, ConformanceBackend, Told } from "./backend.ts";

/** One test's own installation, owner and name on the shared backend. */
export interface Scene {
  backend: ConformanceBackend;
  provider: Provider;
  request: CreateRequest;
  told: Told;
}

export type MakeScene = () => Promise<Scene>;

/** In every request; no trace of them may be left anywhere but on the backend. */
export const sentinels = { password: "sentinel-password-7351", cloudInit: "sentinel-cloudinit-9042" };

/** A deadline that no healthy call comes near. */
export function call(ms = 20_000): Call {
  return { signal: AbortSignal.timeout(ms) };
}

/** What delete gets; without an id as after a create whose answer was lost. */
export function identity(request: CreateRequest, providerID?: string): Identity {
  const { name, namespace, uid, incarnation, installation, zone } = request;
  return { name, namespace, uid, incarnation, installation, zone, providerID };
}

/** Matches a Failure with these fields. */
export function failure(match: Partial<Pick<Failure, "class" | "code" | "ambiguous">>): unknown {
  return expect.toSatisfy(
    (error) =>
      error instanceof Failure && Object.entries(match).every(([key, value]) => Reflect.get(error, key) === value),
  );
}

/** Repeats a delete until it is done. */
export async function deleteWhole(provider: Provider, who: Identity): Promise<void> {
  await expect.poll(() => provider.delete(who, call()), { interval: 5, timeout: 20_000 }).toBe("done");
}

/** Cuts the provider off at one backend call: before its effect, or after it, so that the answer is lost. */
export function cutAt(number: number, when: "before" | "after"): CallHook {
  return (step) => {
    if (step.number !== number || step.when !== when) return;
    throw new Failure({ class: "Transient", code: "CutOff", message: "cut off by the test", ambiguous: true });
  };
}

/** False only where the test itself cut the work off. */
export async function succeeds(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (error instanceof Failure && error.code === "CutOff") return false;
    throw error;
  }
}
