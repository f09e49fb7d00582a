import { expect, test } from "vitest";
import { Metrics } from "#shared/telemetry/metrics.ts";
import { exportGauges } from "./gauges.ts";

test("each scrape reads each queue once, for all the gauges that tell of it", async () => {
  const metrics = new Metrics();
  let reads = 0;
  exportGauges(metrics, {
    proxiesByPhase: () => new Map([["Ready", 2]]),
    fleet: { counts: () => Promise.resolve(new Map()) },
    queues: () => Promise.resolve([{ fn: "reconcile", provider: "lab" }, { fn: "lease" }]),
    depth: () => {
      reads += 1;
      return Promise.resolve({ waiting: reads, delayed: 0, active: 0, oldestAgeSeconds: 7, paused: false });
    },
  });
  expect(await metrics.registry.metrics()).toMatch(
    /proxy_operator_queue_jobs\{queue="reconcile\.lab",state="waiting"\} 1\n[\s\S]*oldest_age_seconds\{queue="lease"\} 7/,
  );
  expect(reads).toBe(2);
  expect(await metrics.registry.metrics()).toContain('proxy_operator_queue_jobs{queue="lease",state="waiting"} 4');
});
