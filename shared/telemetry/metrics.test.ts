import { expect, test } from "vitest";
import { Metrics, mostProxySeries } from "./metrics.ts";

const series = (text: string, name: string): string[] => text.split("\n").filter((line) => line.startsWith(`${name}{`));

test("past the limit of series, probes are counted by provider", async () => {
  const metrics = new Metrics();
  for (let n = 0; n < mostProxySeries + 5; n += 1)
    metrics.observeProbe({ provider: "lab", proxy: `crawl/p${n}`, seconds: 1, ok: false });
  const failures = series(await metrics.registry.metrics(), "proxy_operator_healthcheck_failures_total");
  expect(failures).toHaveLength(mostProxySeries + 1);
  expect(failures).toContain('proxy_operator_healthcheck_failures_total{proxy="lab"} 5');
});

test("a Proxy that is gone takes its series with it", async () => {
  const metrics = new Metrics();
  metrics.observeProbe({ provider: "lab", proxy: "crawl/p1", seconds: 1, ok: false });
  metrics.forgetProxy("crawl/p1");
  expect(await metrics.registry.metrics()).not.toContain("crawl/p1");
});

test("a shared gauge that cannot be read shows nothing rather than an old value", async () => {
  const metrics = new Metrics();
  let broken = false;
  metrics.sharedGauge("x_total_now", "X.", ["phase"], () =>
    broken ? Promise.reject(new Error("away")) : Promise.resolve([{ labels: { phase: "Ready" }, value: 2 }]),
  );
  expect(await metrics.registry.metrics()).toContain('x_total_now{phase="Ready"} 2');
  broken = true;
  expect(series(await metrics.registry.metrics(), "x_total_now")).toEqual([]);
});
