import type { FleetEntry } from "#shared/fleet/fleet-entry.ts";

/** A registry entry with everything filled in; name what your test is about. */
export function fleetEntry(overrides: Partial<FleetEntry> = {}): FleetEntry {
  return {
    namespace: "crawl",
    name: "p1",
    uid: "uid-1",
    incarnation: 1,
    provider: "lab",
    region: "",
    zone: "",
    host: "127.0.0.2",
    port: 3128,
    egressIP: "",
    labels: {},
    probe: { intervalSeconds: 15, timeoutSeconds: 5, healthyThreshold: 2, unhealthyThreshold: 3 },
    max: 1,
    draining: false,
    ...overrides,
  };
}
