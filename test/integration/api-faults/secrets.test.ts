import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { watchSecrets } from "#shared/cluster/watch-secrets.ts";
import { expired } from "#test/fakes/api-proxy/faults.ts";
import { loseEvents } from "#test/fakes/api-proxy/watch-faults.ts";
import { TestApi } from "#test/kubernetes-api.ts";
import { Scene } from "./scene.ts";

let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start();
});
afterAll(() => api.stop());

const content = Buffer.from("hunter2").toString("base64");
const secretsOf = ({ namespace }: Scene, name = "") => `/api/v1/namespaces/${namespace}/secrets${name && `/${name}`}`;
const version = async (scene: Scene, name: string): Promise<string> =>
  String((await api.call("GET", secretsOf(scene, name))).body.metadata["resourceVersion"]);

async function create(scene: Scene, name: string): Promise<string> {
  const body = { metadata: { name }, data: { password: content } };
  expect((await api.call("POST", secretsOf(scene), { body })).status).toBe(201);
  return `${scene.namespace}/${name}@${await version(scene, name)}`;
}

async function change(scene: Scene, name: string): Promise<string> {
  const patch = { body: { data: { more: content } }, type: "application/merge-patch+json" };
  expect((await api.call("PATCH", secretsOf(scene, name), patch)).status).toBe(200);
  return `${scene.namespace}/${name}@${await version(scene, name)}`;
}

/** What a watch of the scene's Secrets tells; the objects as they were told, so that nothing more hides in them. */
async function follow(scene: Scene) {
  const told: string[] = [];
  const fields = new Set<string>();
  const end = new AbortController();
  let [synced, missed] = [false, 0];
  const done = watchSecrets({
    connection: scene.connection,
    namespaces: [scene.namespace],
    onChanged: async (secret) => {
      for (const field of Object.keys(secret)) fields.add(field);
      told.push(`${secret.namespace}/${secret.name}@${secret.resourceVersion}`);
    },
    onGone: async ({ namespace, name }) => void told.push(`gone ${namespace}/${name}`),
    onSynced: () => {
      synced = true;
    },
    onMissed: (count) => {
      missed += count;
    },
    onFailure: () => undefined,
    signal: end.signal,
    timing: { firstBackoffMs: 5, lastBackoffMs: 20, shortestMs: 0 },
  });
  onTestFinished(async () => {
    end.abort();
    await done;
  });
  await vi.waitFor(() => expect(synced).toBe(true), 10_000);
  return { told, fields, missed: () => missed };
}

test("Secrets are followed by name and version, and their content is not sent", async () => {
  const scene = await Scene.begin(api);
  const bodies: string[] = [];
  scene.proxy.rules.add({ resource: "secrets", verb: "list" }, async (exchange) => {
    const answer = await exchange.forward();
    bodies.push(answer.body.toString());
    exchange.answer(answer);
  });
  scene.proxy.rules.add({ resource: "secrets", verb: "watch" }, (exchange) =>
    exchange.relay(async function* (lines) {
      for await (const line of lines) {
        bodies.push(line);
        yield line;
      }
    }),
  );
  const first = await create(scene, "first");
  const { told, fields } = await follow(scene);
  await scene.watching();
  const expected = [first, await create(scene, "second"), await change(scene, "first")];
  expect((await api.call("DELETE", secretsOf(scene, "second"))).status).toBe(200);
  await vi.waitFor(() => expect(told).toEqual([...expected, `gone ${scene.namespace}/second`]), 10_000);
  expect([...fields].sort()).toEqual(["name", "namespace", "resourceVersion"]);
  expect(bodies.length).toBeGreaterThanOrEqual(4);
  expect(bodies.join("\n")).not.toContain(content);
});

test("A change of a Secret that the watch has skipped is found by the list after a compaction", async () => {
  const scene = await Scene.begin(api);
  const first = await create(scene, "first");
  scene.proxy.rules.add({ resource: "secrets", verb: "watch" }, loseEvents(1));
  scene.proxy.rules.add({ resource: "secrets", verb: "watch" }, expired);
  const { told, missed } = await follow(scene);
  await scene.watching();
  const changed = await change(scene, "first");
  const second = await create(scene, "second");
  await vi.waitFor(() => expect(told).toEqual([first, second]), 10_000);
  scene.proxy.hangUp();
  await vi.waitFor(() => expect(told).toEqual([first, second, changed]), 10_000);
  await vi.waitFor(() => expect(missed()).toBe(1));
});

test("A list is metadata only for who asks for a list of it", async () => {
  const scene = await Scene.begin(api);
  await create(scene, "first");
  const accept = (kind: string) => ({ headers: { accept: `application/json;as=${kind};g=meta.k8s.io;v=v1` } });
  const list = await api.call("GET", secretsOf(scene), accept("PartialObjectMetadataList"));
  expect(list.body).toMatchObject({
    kind: "PartialObjectMetadataList",
    apiVersion: "meta.k8s.io/v1",
    items: [{ kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: { name: "first" } }],
  });
  expect((await api.call("GET", secretsOf(scene), accept("PartialObjectMetadata"))).status).toBe(406);
  const one = await api.call("GET", secretsOf(scene, "first"), accept("PartialObjectMetadata"));
  expect(one.body).toMatchObject({ kind: "PartialObjectMetadata", metadata: { name: "first" } });
  expect(Object.keys(one.body).sort()).toEqual(["apiVersion", "kind", "message", "metadata"]);
});
