import type { z } from "zod";
import { healthProbeSettings } from "#functions/health-probe/config.ts";
import { leaseApiSettings } from "#functions/lease-api/config.ts";
import { reconcileSettings } from "#functions/reconcile/config.ts";
import { watcherSettings } from "#functions/watcher/config.ts";
import { clusterSettings, processSettings } from "#shared/process/settings.ts";
import type { FunctionName } from "./function-names.ts";

/** A verdict makes a job, and the providers file says in which queue. */
export const healthProbeRole = clusterSettings.pick({ PROVIDERS_FILE: true }).extend(healthProbeSettings.shape);

const ofFunctions: Readonly<Record<FunctionName, readonly z.ZodType[]>> = {
  reconcile: [clusterSettings, reconcileSettings],
  "health-probe": [healthProbeRole],
  lease: [],
};

/** All settings that a role will read, so that a start can name everything that is wrong with them at once. */
export function settingsOfRole(role: string, only: readonly FunctionName[]): readonly z.ZodType[] {
  const functions = only.flatMap((name) => ofFunctions[name]);
  const watcher = [clusterSettings, watcherSettings];
  const byRole: Readonly<Record<string, readonly z.ZodType[]>> = {
    watcher,
    functions,
    "lease-api": [leaseApiSettings],
    all: [...watcher, ...functions, leaseApiSettings],
  };
  return [processSettings, ...(byRole[role] ?? [])];
}
