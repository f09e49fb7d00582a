import { afterEach, expect, test, vi } from "vitest";
import { z } from "zod";
import {
  json,
  refuse,
  type ScriptedServer,
  type SeenRequest,
  startScriptedServer,
} from "#test/fakes/scripted-server.ts";
import { TestApi } from "#test/kubernetes-api.ts";
import { ClusterConnection } from "./connection.ts";
import { EventRecorder, type ProxyEvent } from "./events.ts";

const running: { stop(): Promise<void> }[] = [];

afterEach(async () => {
  for (const part of running.splice(0).reverse()) await part.stop();
});

const metadata = {
  name: "a",
  namespace: "default",
  uid: "u",
  resourceVersion: "1",
  generation: 1,
  creationTimestamp: "2026-01-01T00:00:00Z",
  finalizers: [],
  labels: {},
  annotations: {},
};
const event = (more: Partial<ProxyEvent> = {}): ProxyEvent => ({
  regarding: { metadata },
  type: "Warning",
  reason: "TransientError",
  message: "no route",
  ...more,
});

function recorder(kubeconfigFile: string) {
  const connection = ClusterConnection.load({ kubeconfigFile, userAgent: "tester" });
  const clock = { now: new Date("2026-01-01T00:00:00Z") };
  const lines: string[] = [];
  const log = { debug: (fields: object) => lines.push(JSON.stringify(fields)) };
  const events = new EventRecorder({ connection, log, now: () => clock.now });
  running.push({ stop: () => connection.close() });
  const pass = (seconds: number) => {
    clock.now = new Date(clock.now.getTime() + seconds * 1000);
  };
  return { events, pass, lines };
}

async function scripted(answer: (request: SeenRequest) => ReturnType<typeof json>): Promise<ScriptedServer> {
  const server = await startScriptedServer((response, request) => answer(request)(response, request));
  running.push(server);
  return server;
}

const echo = (request: SeenRequest) =>
  json(JSON.parse(request.body), { status: request.method === "POST" ? 201 : 200 });
const series = z.object({ count: z.number(), lastTimestamp: z.string() });
const eventsOf = async (api: TestApi, name: string) => {
  const path = `/api/v1/namespaces/${api.namespace}/events?fieldSelector=involvedObject.name=${name}`;
  return (await api.call("GET", path)).body.items;
};

test("An event reaches an API server, where kubectl finds it by its Proxy", async () => {
  const api = await TestApi.start();
  running.push(api);
  const { events, pass, lines } = recorder(api.kubeconfigFile);
  const here = { ...metadata, namespace: api.namespace };
  const a = event({ regarding: { metadata: here } });
  events.record(a);
  events.record(event({ type: "Normal", reason: "Creating", regarding: { metadata: { ...here, name: "b" } } }));
  await vi.waitFor(async () => expect(await eventsOf(api, "b")).toHaveLength(1));
  pass(11);
  events.record(a);
  await events.close();
  expect(lines).toEqual([]);
  expect(await eventsOf(api, "a")).toMatchObject([
    {
      type: "Warning",
      reason: "TransientError",
      message: "no route",
      involvedObject: { kind: "Proxy", apiVersion: "crawl.example.com/v1alpha1", name: "a", uid: "u" },
      count: 2,
      firstTimestamp: expect.stringMatching(/^2026-01-01T00:00:00/),
      lastTimestamp: expect.stringMatching(/^2026-01-01T00:00:11/),
    },
  ]);
});

test("Repeats count in one event, written at most every 10 s; after 6 min of quiet there is a new one", async () => {
  const server = await scripted(echo);
  const { events, pass } = recorder(server.kubeconfigFile);
  for (let repeat = 0; repeat < 5; repeat += 1) events.record(event());
  await vi.waitFor(() => expect(server.requests).toHaveLength(1));
  pass(11);
  events.record(event());
  await vi.waitFor(() => expect(server.requests).toHaveLength(2));
  pass(361);
  events.record(event());
  events.record(event({ message: "another" }));
  await events.close();
  expect(server.requests.map(({ method }) => method)).toEqual(["POST", "PATCH", "POST", "POST"]);
  const [, patch] = server.requests;
  expect(series.parse(JSON.parse(patch?.body ?? "")).count).toBe(6);
  expect(patch?.headers["content-type"]).toBe("application/merge-patch+json");
});

test("An event that cannot be written is dropped and counted, and the next one is written", async () => {
  let refused = 0;
  const server = await scripted((request) => (refused++ === 0 ? refuse(403, "Forbidden", "no") : echo(request)));
  const { events, lines } = recorder(server.kubeconfigFile);
  events.record(event());
  events.record(event({ reason: "Creating" }));
  await events.close();
  expect(events.dropped).toBe(1);
  expect(lines[0]).toContain("no (POST");
  expect(server.requests).toHaveLength(2);
});

test("Recording never waits: beyond a thousand waiting events, and after the end, they are dropped", async () => {
  const server = await scripted(echo);
  const { events } = recorder(server.kubeconfigFile);
  for (let index = 0; index < 1_010; index += 1) events.record(event());
  expect(events.dropped).toBeGreaterThan(0);
  await events.close();
  const dropped = events.dropped;
  events.record(event());
  expect(events.dropped).toBe(dropped + 1);
});

test("A long message is cut, with an ellipsis", async () => {
  const server = await scripted(echo);
  const { events } = recorder(server.kubeconfigFile);
  events.record(event({ message: "x".repeat(2_000) }));
  await events.close();
  const { message } = z.object({ message: z.string() }).parse(JSON.parse(server.requests[0]?.body ?? ""));
  expect(message).toBe(`${"x".repeat(1_023)}…`);
});
