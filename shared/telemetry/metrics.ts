import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** Proxies that get a series of their own in the health check metrics; past that the provider stands in for them. */
export const mostProxySeries = 1000;

/** Every metric of ours. Names of those that the predecessor had are kept: dashboards and alerts go on working. */
export class Metrics {
  readonly registry = new Registry();
  readonly #proxySeries = new Set<string>();

  readonly providerRequests = new Counter({
    name: "proxy_operator_provider_requests_total",
    help: "Calls to a provider, by operation and result (ok or the class of the failure).",
    labelNames: ["provider", "op", "result"],
    registers: [this.registry],
  });

  readonly #healthcheckDuration = new Histogram({
    name: "proxy_operator_healthcheck_duration_seconds",
    help: "Duration of every probe.",
    labelNames: ["proxy"],
    buckets: [0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [this.registry],
  });

  readonly #healthcheckFailures = new Counter({
    name: "proxy_operator_healthcheck_failures_total",
    help: "Probes that failed.",
    labelNames: ["proxy"],
    registers: [this.registry],
  });

  readonly jobs = new Counter({
    name: "proxy_operator_jobs_total",
    help: "Job runs, by function and how they ended.",
    labelNames: ["function", "outcome"],
    registers: [this.registry],
  });

  readonly leaseRequests = new Counter({
    name: "proxy_operator_lease_requests_total",
    help: "Requests to the lease API, by method, route and status.",
    labelNames: ["method", "route", "status"],
    registers: [this.registry],
  });

  readonly problems = new Counter({
    name: "proxy_operator_problems_total",
    help: "Things that went wrong and were survived, by kind; the log line says more.",
    labelNames: ["kind"],
    registers: [this.registry],
  });

  /** Counts one probe, whatever came of it. */
  observeProbe(probe: { provider: string; proxy: string; seconds: number; ok: boolean }): void {
    const known = this.#proxySeries.has(probe.proxy) || this.#proxySeries.size < mostProxySeries;
    if (known) this.#proxySeries.add(probe.proxy);
    const labels = { proxy: known ? probe.proxy : probe.provider };
    this.#healthcheckDuration.observe(labels, probe.seconds);
    if (!probe.ok) this.#healthcheckFailures.inc(labels);
  }

  /** Proxies that have a series of their own. */
  proxiesWithSeries(): string[] {
    return [...this.#proxySeries];
  }

  /** Drops the series of a Proxy that is gone. */
  forgetProxy(proxy: string): void {
    this.#proxySeries.delete(proxy);
    this.#healthcheckDuration.remove({ proxy });
    this.#healthcheckFailures.remove({ proxy });
  }

  /** Adds what Node says of itself: memory, event loop lag, handles. */
  collectProcess(): void {
    collectDefaultMetrics({ register: this.registry });
  }

  /**
   * A gauge of state that several processes share. Read at scrape, and to be exported by exactly one process, so that
   * nothing counts twice. A read that fails leaves the series out rather than showing an old value.
   */
  sharedGauge(
    name: string,
    help: string,
    labelNames: string[],
    read: () => Promise<{ labels: Record<string, string>; value: number }[]>,
  ): void {
    const gauge = new Gauge({ name, help, labelNames, registers: [this.registry], collect });
    const { problems } = this;
    async function collect(): Promise<void> {
      gauge.reset();
      try {
        for (const { labels, value } of await read()) gauge.set(labels, value);
      } catch {
        problems.inc({ kind: "gauge-unreadable" });
      }
    }
  }
}
