import { expect, test } from "vitest";
import { startAdminServer } from "./admin-server.ts";

test("health, readiness with what it waits for, and metrics are served; anything else is not found", async () => {
  let waiting = ["the providers file"];
  const server = await startAdminServer({
    host: "127.0.0.1",
    port: 0,
    metrics: () => Promise.resolve("up 1\n"),
    metricsContentType: "text/plain; version=0.0.4",
    notReady: () => waiting,
  });
  try {
    const get = async (path: string): Promise<string> => {
      const response = await fetch(`http://127.0.0.1:${server.port}${path}`);
      return `${response.status} ${await response.text()}`;
    };
    expect(await get("/healthz")).toBe("200 ok\n");
    expect(await get("/readyz")).toBe("503 waiting for the providers file\n");
    waiting = [];
    expect(await get("/readyz")).toBe("200 ok\n");
    expect(await get("/metrics")).toBe("200 up 1\n");
    expect(await get("/other")).toBe("404 not found\n");
  } finally {
    await server.close();
  }
});

test("a port in use is said with the setting that names it", async () => {
  const deps = {
    host: "127.0.0.1",
    metrics: () => Promise.resolve(""),
    metricsContentType: "text/plain",
    notReady: () => [],
  };
  const first = await startAdminServer({ ...deps, port: 0 });
  try {
    await expect(startAdminServer({ ...deps, port: first.port })).rejects.toThrow(`ADMIN_PORT ${first.port} is in use`);
  } finally {
    await first.close();
  }
});
