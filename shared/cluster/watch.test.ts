import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test, vi } from "vitest";
import { z } from "zod";
import type { Failure } from "#shared/errors/failure.ts";
import { type Answer, json, refuse, type ScriptedServer, startScriptedServer } from "#test/fakes/scripted-server.ts";
import { ClusterConnection } from "./connection.ts";
import { type WatchOptions, watchResource } from "./watch.ts";
import type { Change } from "./watched-objects.ts";

const path = "/apis/crawl.example.com/v1alpha1/proxies";
const running: { stop(): Promise<void> }[] = [];

afterEach(async () => {
  for (const part of running.splice(0).reverse()) await part.stop();
});

const object = (name: string, version: number, uid = `uid-${name}`) => ({
  metadata: { namespace: "n", name, uid, resourceVersion: `${version}` },
});
const list = (version: number, ...items: object[]): Answer =>
  json({ kind: "List", metadata: { resourceVersion: `${version}` }, items });
const line = (type: string, body: object): string => `${JSON.stringify({ type, object: body })}\n`;
const bookmark = (version: number): string => line("BOOKMARK", { metadata: { resourceVersion: `${version}` } });
const gone410 = { kind: "Status", code: 410, reason: "Expired", message: "too old resource version: 1 (9)" };

/** A watch that sends these chunks and then stays open, or does `then`. */
const watch = (chunks: string[], then: (response: ServerResponse) => void = () => undefined): Answer => {
  return (response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    for (const chunk of chunks) response.write(chunk);
    then(response);
  };
};
const quiet = watch([]);
const ends = (response: ServerResponse): void => void response.end();
/** Only once what was written is on its way: a reset must not take it back. */
const resets = (response: ServerResponse): void => void setTimeout(() => response.socket?.resetAndDestroy(), 20);

interface Followed {
  server: ScriptedServer;
  told: string[];
  failures: Failure[];
  listed: { count: number; missed: number }[];
  requests(): string[];
  /** Most watches that the server had open at a time. */
  mostWatches(): number;
  abort: AbortController;
  done: Promise<void>;
}

/** The first list gets the first answer of `lists`, and so on; the last one answers the rest. The same for watches. */
async function follow(
  script: { lists: Answer[]; watches: Answer[] },
  options: Partial<Pick<WatchOptions, "onChange" | "timing" | "labelSelector">> = {},
): Promise<Followed> {
  let [lists, watches, open, most] = [0, 0, 0, 0];
  const server = await startScriptedServer((response, request) => {
    if (!request.query.has("watch")) {
      script.lists[Math.min(lists++, script.lists.length - 1)]?.(response, request);
      return;
    }
    most = Math.max(most, ++open);
    response.on("close", () => open--);
    script.watches[Math.min(watches++, script.watches.length - 1)]?.(response, request);
  });
  const connection = ClusterConnection.load({ kubeconfigFile: server.kubeconfigFile, userAgent: "tester" });
  const abort = new AbortController();
  const followed = { told: [] as string[], failures: [] as Failure[] };
  const listed: Followed["listed"] = [];
  const done = watchResource({
    connection,
    path,
    ...options,
    timing: { firstBackoffMs: 5, lastBackoffMs: 20, shortestMs: 0, ...options.timing },
    onChange: async (change) => {
      await options.onChange?.(change);
      followed.told.push(describe(change));
    },
    onListed: (each) => listed.push(each),
    onFailure: (failure) => followed.failures.push(failure),
    signal: abort.signal,
  });
  running.push(server, {
    async stop() {
      abort.abort();
      await done;
      await connection.close();
    },
  });
  const requests = (): string[] =>
    server.requests.map(({ query }) => (query.has("watch") ? `watch ${query.get("resourceVersion")}` : "list"));
  return { ...followed, server, listed, requests, mostWatches: () => most, abort, done };
}

const identity = z.object({ metadata: z.object({ uid: z.string(), resourceVersion: z.string() }) });

function describe(change: Change): string {
  if (change.kind === "gone") return `gone ${change.key} ${change.uid}`;
  const { metadata } = identity.parse(change.object);
  return `set ${change.key} ${metadata.uid}@${metadata.resourceVersion}`;
}

const codes = (failures: Failure[]): string[] => failures.map(({ code }) => code);

test("Everything is listed page by page, then watched with bookmarks from the list's version", async () => {
  const first = json({ metadata: { resourceVersion: "9", continue: "token" }, items: [object("a", 3)] });
  const changes = line("MODIFIED", object("a", 10)) + line("ADDED", object("c", 11)) + line("DELETED", object("b", 12));
  const seen = await follow(
    { lists: [first, list(9, object("b", 4))], watches: [watch([changes])] },
    { labelSelector: "a=b" },
  );
  await vi.waitFor(() => expect(seen.told).toHaveLength(5));
  expect(seen.told).toEqual([
    "set n/a uid-a@3",
    "set n/b uid-b@4",
    "set n/a uid-a@10",
    "set n/c uid-c@11",
    "gone n/b uid-b",
  ]);
  const [one, two, three] = seen.server.requests.map(({ query }) => Object.fromEntries(query));
  expect(one).toEqual({ limit: "500", labelSelector: "a=b" });
  expect(two).toEqual({ limit: "500", labelSelector: "a=b", continue: "token" });
  expect(three).toMatchObject({
    watch: "true",
    allowWatchBookmarks: "true",
    resourceVersion: "9",
    labelSelector: "a=b",
  });
  expect(Number(three?.timeoutSeconds)).toBeGreaterThanOrEqual(240);
  expect(seen.listed).toEqual([{ count: 2, missed: 0 }]);
});

test("A watch that the server ends goes on from the last version, a bookmark's included, without a list", async () => {
  const seen = await follow({
    lists: [list(5)],
    watches: [watch([line("ADDED", object("a", 6))], ends), watch([bookmark(20)], ends), quiet],
  });
  await vi.waitFor(() => expect(seen.requests()).toEqual(["list", "watch 5", "watch 6", "watch 20"]));
  expect(seen.failures).toEqual([]);
  expect(seen.mostWatches()).toBe(1);
});

test("A watch that the server ends at once again and again does not spin", async () => {
  const timing = { shortestMs: 60_000, firstBackoffMs: 20, lastBackoffMs: 100_000 };
  const seen = await follow({ lists: [list(5)], watches: [watch([], ends)] }, { timing });
  await vi.waitFor(() => expect(seen.failures.length).toBeGreaterThanOrEqual(4));
  expect(new Set(codes(seen.failures))).toEqual(new Set(["WatchEnded"]));
});

test.each([
  { form: "as an HTTP status", answer: refuse(410, "Expired", "too old resource version") },
  { form: "as an ERROR in the stream", answer: watch([line("ERROR", gone410)]) },
])("An expired version $form leads to a list, whose differences are told", async ({ answer }) => {
  const seen = await follow({
    lists: [list(5, object("a", 1), object("b", 2)), list(9, object("b", 2), object("c", 8))],
    watches: [answer, quiet],
  });
  await vi.waitFor(() => expect(seen.requests()).toEqual(["list", "watch 5", "list", "watch 9"]));
  expect(seen.told).toEqual(["set n/a uid-a@1", "set n/b uid-b@2", "set n/c uid-c@8", "gone n/a uid-a"]);
  expect(codes(seen.failures)).toEqual(["Gone"]);
  // Nobody missed them: the watch never promised to tell.
  expect(seen.listed.at(-1)).toEqual({ count: 2, missed: 0 });
});

test("A continue token that expires starts the list again, and nothing is taken for gone", async () => {
  const half = json({ metadata: { resourceVersion: "9", continue: "token" }, items: [object("a", 3)] });
  const seen = await follow({
    lists: [half, refuse(410, "Expired", "continue too old"), list(12, object("a", 3), object("b", 4))],
    watches: [quiet],
  });
  await vi.waitFor(() => expect(seen.requests()).toEqual(["list", "list", "list", "watch 12"]));
  expect(seen.told).toEqual(["set n/a uid-a@3", "set n/b uid-b@4"]);
});

test("A watch without a byte ends at the idle limit, and the next one resumes", async () => {
  const seen = await follow(
    { lists: [list(5)], watches: [watch([bookmark(6)]), watch([line("ADDED", object("a", 7))])] },
    { timing: { idleMs: 100 } },
  );
  await vi.waitFor(() => expect(seen.told).toEqual(["set n/a uid-a@7"]));
  expect(codes(seen.failures)).toContain("Idle");
  expect(seen.requests().slice(0, 3)).toEqual(["list", "watch 5", "watch 6"]);
  expect(seen.mostWatches()).toBe(1);
});

test("A handler that takes its time is not idleness", async () => {
  const taken = Promise.withResolvers<void>();
  const next = (response: ServerResponse): void =>
    void taken.promise.then(() => response.write(line("ADDED", object("b", 7))));
  let failuresBefore = -1;
  const seen = await follow(
    { lists: [list(5)], watches: [watch([line("ADDED", object("a", 6))], next)] },
    {
      timing: { idleMs: 100 },
      onChange: async ({ key }) => {
        if (key === "n/b") failuresBefore = seen.failures.length;
        else await sleep(300);
        taken.resolve();
      },
    },
  );
  await vi.waitFor(() => expect(seen.told).toEqual(["set n/a uid-a@6", "set n/b uid-b@7"]));
  expect(failuresBefore).toBe(0);
});

test.each([
  {
    fault: "a reset in the middle of a line",
    cut: watch([line("ADDED", object("a", 6)), '{"type":"ADD'], resets),
    code: "Unreachable",
  },
  { fault: "a line that is no JSON", cut: watch([line("ADDED", object("a", 6)), "%$!\n"]), code: "UnexpectedAnswer" },
  {
    fault: "an object without a version",
    cut: watch([line("ADDED", object("a", 6)), line("ADDED", {})]),
    code: "UnexpectedAnswer",
  },
  {
    fault: "an ERROR that is not 410",
    cut: watch([line("ADDED", object("a", 6)), line("ERROR", { code: 500, message: "etcd" })]),
    code: "WatchError",
  },
])("After $fault the watch resumes from what was told, and nothing is lost or told twice", async ({ cut, code }) => {
  const next = watch([line("ADDED", object("a", 6)), line("ADDED", object("b", 7))]);
  const seen = await follow({ lists: [list(5)], watches: [cut, next] });
  await vi.waitFor(() => expect(seen.told).toEqual(["set n/a uid-a@6", "set n/b uid-b@7"]));
  expect(codes(seen.failures)).toEqual([code]);
  expect(seen.requests()).toEqual(["list", "watch 5", "watch 6"]);
});

test("An event split into bytes, also within a letter, is one event", async () => {
  const bytes = Buffer.from(line("ADDED", { ...object("ä€", 6), note: "ü" }));
  const drip: Answer = (response) => {
    response.writeHead(200, { "content-type": "application/json" });
    for (const byte of bytes) response.write(Buffer.of(byte));
  };
  const seen = await follow({ lists: [list(5)], watches: [drip] });
  await vi.waitFor(() => expect(seen.told).toEqual(["set n/ä€ uid-ä€@6"]));
});

test("Overload is waited out for as long as the server says", async () => {
  const busy = refuse(429, "TooManyRequests", "busy", { headers: { "retry-after": "0" } });
  const seen = await follow({ lists: [busy, refuse(500, "InternalError"), list(5)], watches: [busy, quiet] });
  await vi.waitFor(() => expect(seen.requests()).toEqual(["list", "list", "list", "watch 5", "watch 5"]));
  expect(codes(seen.failures)).toEqual(["ServerError", "TooManyRequests"]);
});

test("Three failures in a row lead to a list, and a server that insists on an older state is believed", async () => {
  const seen = await follow({ lists: [list(5), list(3)], watches: [...Array(3).fill(refuse(504, "Timeout")), quiet] });
  await vi.waitFor(() =>
    expect(seen.requests()).toEqual(["list", "watch 5", "watch 5", "watch 5", "list", "list", "list", "watch 3"]),
  );
});

test("An object that was replaced unseen is gone and new, in a list and in a watch", async () => {
  const seen = await follow({
    lists: [list(5, object("a", 1)), list(9, object("a", 8, "second"))],
    watches: [watch([line("ERROR", gone410)]), watch([line("ADDED", object("a", 10, "third"))])],
  });
  await vi.waitFor(() => expect(seen.told).toHaveLength(5));
  expect(seen.told).toEqual([
    "set n/a uid-a@1",
    "gone n/a uid-a",
    "set n/a second@8",
    "gone n/a second",
    "set n/a third@10",
  ]);
});

test("The late end of an object that was replaced does not take its successor away", async () => {
  const late = line("DELETED", object("a", 6, "first")) + line("MODIFIED", object("a", 7, "second"));
  const seen = await follow({ lists: [list(5, object("a", 5, "second"))], watches: [watch([late])] });
  await vi.waitFor(() => expect(seen.told).toEqual(["set n/a second@5", "set n/a second@7"]));
});

test("The list that comes now and then finds what a watch did not tell, and counts it", async () => {
  const seen = await follow(
    {
      // c changed after the watch had ended: nobody missed that.
      lists: [list(5, object("a", 1), object("b", 2)), list(30, object("a", 6), object("c", 29))],
      watches: [watch([bookmark(20)]), quiet],
    },
    { timing: { relistMs: 150 } },
  );
  await vi.waitFor(() => expect(seen.listed.length).toBeGreaterThanOrEqual(2));
  expect(seen.told).toEqual([
    "set n/a uid-a@1",
    "set n/b uid-b@2",
    "set n/a uid-a@6",
    "set n/c uid-c@29",
    "gone n/b uid-b",
  ]);
  expect(seen.listed.slice(0, 2)).toEqual([
    { count: 2, missed: 0 },
    { count: 2, missed: 2 },
  ]);
  expect(seen.failures).toEqual([]);
  expect(seen.mostWatches()).toBe(1);
});

test("A change that the handler rejects holds up no other, is reported, and is told again", async () => {
  let broken = true;
  const seen = await follow(
    {
      lists: [list(5, object("a", 1), object("b", 2)), list(9, object("a", 1), object("b", 2), object("d", 7))],
      watches: [watch([line("DELETED", object("c", 6)), line("ADDED", object("d", 7))]), quiet],
    },
    {
      onChange: (change) => {
        if (broken && change.key === "n/a") throw new Error("Redis is away");
        if (change.key === "n/d") broken = false;
      },
    },
  );
  await vi.waitFor(() => expect(seen.told).toContain("set n/a uid-a@1"));
  expect(seen.told.slice(0, 1)).toEqual(["set n/b uid-b@2"]);
  expect(seen.failures[0]).toMatchObject({ code: "HandlerFailed", message: expect.stringContaining("Redis is away") });
  expect(seen.listed.every(({ missed }) => missed === 0)).toBe(true);
});

test("The end of an object that the handler rejects is told again", async () => {
  let broken = true;
  const seen = await follow(
    { lists: [list(5, object("a", 1)), list(7)], watches: [watch([line("DELETED", object("a", 6))]), quiet] },
    {
      onChange: ({ kind }) => {
        if (kind !== "gone" || !broken) return;
        broken = false;
        throw new Error("no");
      },
    },
  );
  await vi.waitFor(() => expect(seen.told).toEqual(["set n/a uid-a@1", "gone n/a uid-a"]));
});

test("It ends at once when the signal fires: while it watches, waits to try again, or a handler hangs", async () => {
  const scripts = [
    { lists: [list(5)], watches: [quiet], until: "watch 5", onChange: () => undefined },
    { lists: [refuse(500, "InternalError")], watches: [quiet], until: "list", onChange: () => undefined },
    { lists: [list(5, object("a", 1))], watches: [quiet], until: "list", onChange: () => new Promise<void>(() => {}) },
  ];
  for (const { until, onChange, ...script } of scripts) {
    const seen = await follow(script, { onChange, timing: { firstBackoffMs: 600_000, lastBackoffMs: 600_000 } });
    await vi.waitFor(() => expect(seen.requests()).toContain(until));
    seen.abort.abort();
    await seen.done;
  }
});

test("Neither socket nor timer stays behind", async () => {
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const before = timers();
  const seen = await follow({ lists: [list(5)], watches: [watch([bookmark(6)])] });
  await vi.waitFor(() => expect(seen.requests()).toContain("watch 5"));
  seen.abort.abort();
  await seen.done;
  await running.pop()?.stop();
  await vi.waitFor(() => expect(seen.server.connections().open).toBe(0));
  expect(timers()).toBeLessThanOrEqual(before);
});
