import { writeFile } from "node:fs/promises";
import { CoreV1Api, CustomObjectsApi } from "@kubernetes/client-node";
import { afterEach, expect, test, vi } from "vitest";
import { type Answer, json, refuse, type ScriptedServer, startScriptedServer } from "#test/fakes/scripted-server.ts";
import { ClusterConnection } from "./connection.ts";

const running: { stop(): Promise<void> }[] = [];

afterEach(async () => {
  for (const part of running.splice(0).reverse()) await part.stop();
});

/** The first request gets the first answer, and so on; the last one answers the rest. */
async function connect(...answers: Answer[]): Promise<{ server: ScriptedServer; connection: ClusterConnection }> {
  let next = 0;
  const server = await startScriptedServer((response, request) => {
    const answer = answers[Math.min(next++, answers.length - 1)];
    answer?.(response, request);
  });
  running.push(server);
  const connection = ClusterConnection.load({ kubeconfigFile: server.kubeconfigFile, userAgent: "tester/1" });
  running.push({ stop: () => connection.close() });
  return { server, connection };
}

const call = () => ({ signal: new AbortController().signal });
const secret = { kind: "Secret", apiVersion: "v1", metadata: { name: "s", resourceVersion: "7" }, data: {} };
const never: Answer = () => undefined;
const hangUp: Answer = (response) => response.destroy();
const readSecret = (connection: ClusterConnection, options: { signal?: AbortSignal; deadlineMs?: number } = {}) =>
  connection.api(CoreV1Api, { ...call(), ...options }).readNamespacedSecret({ namespace: "n", name: "s" });
const createSecret = (connection: ClusterConnection, deadlineMs?: number) =>
  connection.api(CoreV1Api, { ...call(), deadlineMs }).createNamespacedSecret({ namespace: "n", body: secret });

test("Requests share connections", async () => {
  const { server, connection } = await connect(json(secret));
  for (let i = 0; i < 50; i += 1) await readSecret(connection);
  await connection.json({ path: "/version", query: {} }, call());
  expect(server.requests).toHaveLength(51);
  // The second one is opened when a request comes in the very moment in which the first is being given back.
  expect(server.connections().opened).toBeLessThanOrEqual(2);
  expect(server.requests[0]?.headers).toMatchObject({ authorization: "Bearer first-token", "user-agent": "tester/1" });
});

test("Closing ends requests that hang, and every socket", async () => {
  const { server, connection } = await connect(json(secret), never);
  await readSecret(connection);
  const aborted = expect(readSecret(connection)).rejects.toMatchObject({ class: "Transient", code: "Aborted" });
  await vi.waitFor(() => expect(server.requests).toHaveLength(2));
  await connection.close();
  await aborted;
  await vi.waitFor(() => expect(server.connections().open).toBe(0));
  await expect(readSecret(connection)).rejects.toMatchObject({ class: "Transient", code: "Aborted" });
});

test("Nothing stays behind on the caller's signal, and no timer", async () => {
  const { connection } = await connect(json(secret), refuse(500, "InternalError"));
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const before = timers();
  const { signal } = new AbortController();
  const add = vi.spyOn(signal, "addEventListener");
  const remove = vi.spyOn(signal, "removeEventListener");
  await readSecret(connection, { signal });
  await expect(readSecret(connection, { signal })).rejects.toThrow("500");
  expect(add.mock.calls.length).toBeGreaterThan(0);
  expect(remove.mock.calls.length).toBe(add.mock.calls.length);
  await connection.close();
  await vi.waitFor(() => expect(timers()).toBeLessThanOrEqual(before));
});

test("A read that gets no answer ends at its deadline", async () => {
  const { connection } = await connect(never);
  await expect(readSecret(connection, { deadlineMs: 100 })).rejects.toMatchObject({
    code: "Timeout",
    ambiguous: false,
  });
});

test("A write that gets no answer is ambiguous", async () => {
  const { connection } = await connect(never);
  await expect(createSecret(connection, 100)).rejects.toMatchObject({ code: "Timeout", ambiguous: true });
});

test("A body that stops midway ends at the deadline too", async () => {
  const { connection } = await connect((response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.write('{"kind":');
  });
  await expect(readSecret(connection, { deadlineMs: 200 })).rejects.toMatchObject({ code: "Timeout" });
});

test("The caller's signal ends a call at once, also while it waits to try again", async () => {
  const { server, connection } = await connect(
    refuse(429, "TooManyRequests", "busy", { headers: { "retry-after": "10" } }),
  );
  const caller = new AbortController();
  const waiting = readSecret(connection, { signal: caller.signal });
  await vi.waitFor(() => expect(server.requests).toHaveLength(1));
  caller.abort(new Error("lock lost"));
  await expect(waiting).rejects.toMatchObject({ code: "Aborted", message: expect.stringContaining("lock lost") });
});

test("A refusal for overload is repeated after Retry-After, for writes too", async () => {
  const { server, connection } = await connect(
    refuse(429, "TooManyRequests", "busy", { headers: { "retry-after": "0" } }),
    refuse(503, "ServiceUnavailable", "starting", { headers: { "retry-after": "0" } }),
    json(secret),
  );
  await createSecret(connection);
  expect(server.requests.map((request) => request.method)).toEqual(["POST", "POST", "POST"]);
});

test("A Retry-After beyond the deadline fails at once, and says for how long", async () => {
  const { server, connection } = await connect(
    refuse(429, "TooManyRequests", "busy", { headers: { "retry-after": "60" } }),
  );
  await expect(createSecret(connection)).rejects.toMatchObject({ code: "TooManyRequests", retryAfterMs: 60_000 });
  expect(server.requests).toHaveLength(1);
});

test("Endless overload gives up after four attempts", async () => {
  const { server, connection } = await connect(
    refuse(429, "TooManyRequests", "busy", { headers: { "retry-after": "0" } }),
  );
  await expect(createSecret(connection)).rejects.toMatchObject({ code: "TooManyRequests" });
  expect(server.requests).toHaveLength(4);
});

test("A read is repeated when the connection breaks", async () => {
  const { server, connection } = await connect(hangUp, json(secret));
  await expect(readSecret(connection)).resolves.toMatchObject({ metadata: { name: "s" } });
  expect(server.requests).toHaveLength(2);
});

test("A write is not repeated when the connection breaks, and is ambiguous", async () => {
  const { server, connection } = await connect(hangUp, json(secret));
  await expect(createSecret(connection)).rejects.toMatchObject({ code: "Unreachable", ambiguous: true });
  expect(server.requests).toHaveLength(1);
});

test("A server that is not there is Unreachable, and a write to it not ambiguous", async () => {
  const { server, connection } = await connect(json(secret));
  await readSecret(connection); // the token is known from now on
  await server.stop();
  running.shift();
  await expect(createSecret(connection)).rejects.toMatchObject({ code: "Unreachable", ambiguous: false });
});

test("A refused token is read again from its file, and the call repeated once", async () => {
  const { server, connection } = await connect((response, request) => {
    const known = request.headers.authorization === "Bearer second-token";
    (known ? json(secret) : refuse(401, "Unauthorized"))(response, request);
  });
  await expect(readSecret(connection)).rejects.toMatchObject({ class: "Transient", code: "Unauthorized" });
  expect(server.requests).toHaveLength(2);
  await writeFile(server.tokenFile, "second-token");
  await createSecret(connection);
  expect(server.requests).toHaveLength(4);
});

test("Custom objects reject with Failures too", async () => {
  const { connection } = await connect(refuse(403, "Forbidden", "User cannot get"));
  const proxies = connection.api(CustomObjectsApi, call());
  const read = proxies.getNamespacedCustomObject({ group: "g", version: "v", namespace: "n", plural: "p", name: "a" });
  await expect(read).rejects.toMatchObject({ name: "Failure", class: "Permanent", code: "Forbidden" });
});

test("A kubeconfig that is missing or names no cluster fails with the remedy", async () => {
  const load = (kubeconfigFile?: string) => ClusterConnection.load({ kubeconfigFile, userAgent: "t" });
  expect(() => load("/nowhere/config")).toThrow("cannot read kubeconfig /nowhere/config");
  expect(() => load()).toThrow("set KUBECONFIG");
});
