import { Failure } from "#shared/errors/failure.ts";
import { isPortFree } from "./free-port.ts";

/** An address of ours that nothing uses: a port that is in use here is in use on all addresses. */
const unusedHost = "127.63.0.1";

/**
 * Refuses a start that would fail late, before anything is started. `leasePort`: of the lease API. `proxyPort`: of the
 * sample Proxies, each on an address of its own, where they run on this machine. Throws `PortInUse` with the remedy.
 */
export async function checkPorts({ leasePort, proxyPort }: { leasePort: number; proxyPort?: number }): Promise<void> {
  if (!(await isPortFree("127.0.0.1", leasePort))) {
    throw inUse(
      `Port ${leasePort} of 127.0.0.1, for the lease API, is in use: stop what uses it, or give another with --lease-port.`,
    );
  }
  // Squid's own service does that; our Squids would end as soon as they start, and its answers would pass for theirs.
  if (proxyPort !== undefined && !(await isPortFree(unusedHost, proxyPort))) {
    throw inUse(
      `Port ${proxyPort}, for the sample Proxies, is in use on all addresses: stop what uses it (Squid's own service?), then start again.`,
    );
  }
}

function inUse(message: string): Failure {
  return new Failure({ class: "Permanent", code: "PortInUse", message });
}
