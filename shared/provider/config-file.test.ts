import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Failure } from "#shared/errors/failure.ts";
import { loadProvidersFile, type ProvidersFile, watchProvidersFile } from "./config-file.ts";

const one = "providers: [{name: one, type: kubernetes}]";
const two = "providers: [{name: one, type: kubernetes}, {name: two, type: kubernetes}]";

async function folder(): Promise<string> {
  const dir = await mkdtemp(path.join(tmpdir(), "providers-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  return dir;
}

function watch(file: string, loaded?: ProvidersFile) {
  const changes: string[][] = [];
  const errors: Failure[] = [];
  const stop = new AbortController();
  const done = watchProvidersFile({
    path: file,
    loaded,
    intervalMs: 5,
    onChange: ({ entries }) => void changes.push(entries.map((entry) => entry.name)),
    onError: (failure) => void errors.push(failure),
    signal: stop.signal,
  });
  onTestFinished(async () => {
    stop.abort();
    await done;
  });
  return { changes, errors };
}

test("loading a missing or bad file names the file", async () => {
  const file = path.join(await folder(), "providers.yaml");
  await expect(loadProvidersFile(file)).rejects.toMatchObject({
    code: "ProvidersFileUnreadable",
    message: expect.stringContaining(file),
  });
  await writeFile(file, "providers: []");
  await expect(loadProvidersFile(file)).rejects.toMatchObject({
    code: "InvalidProvidersFile",
    message: expect.stringMatching(/providers\.yaml: providers: expected/),
  });
});

test("a swapped symlink is noticed, and the content already loaded is not reported", async () => {
  const dir = await folder();
  for (const [name, text] of Object.entries({ old: one, new: two })) {
    await mkdir(path.join(dir, name));
    await writeFile(path.join(dir, name, "providers.yaml"), text);
  }
  await symlink("old", path.join(dir, "data"));
  const file = path.join(dir, "data", "providers.yaml");
  const { changes } = watch(file, await loadProvidersFile(file));
  await symlink("new", path.join(dir, "next"));
  await rename(path.join(dir, "next"), path.join(dir, "data"));
  await expect.poll(() => changes).toEqual([["one", "two"]]);
});

test("a bad file is reported once per content and keeps the last good one", async () => {
  const file = path.join(await folder(), "providers.yaml");
  await writeFile(file, one);
  const { changes, errors } = watch(file);
  await vi.waitFor(() => expect(changes).toHaveLength(1));
  for (const [count, bad] of ["providers: [", "providers: []"].entries()) {
    await writeFile(`${file}.next`, bad);
    await rename(`${file}.next`, file);
    await vi.waitFor(() => expect(errors).toHaveLength(count + 1));
  }
  await rm(file);
  await vi.waitFor(() => expect(errors.at(-1)?.code).toBe("ProvidersFileUnreadable"));
  expect(errors.map((error) => error.code)).toEqual([
    "InvalidProvidersFile",
    "InvalidProvidersFile",
    "ProvidersFileUnreadable",
  ]);
  expect(changes).toEqual([["one"]]);

  // The same good content again: reported, so that the alarm can end.
  await writeFile(`${file}.next`, one);
  await rename(`${file}.next`, file);
  await vi.waitFor(() => expect(changes).toEqual([["one"], ["one"]]));
});

test("a change that cannot be applied is reported and the watch goes on", async () => {
  const file = path.join(await folder(), "providers.yaml");
  await writeFile(file, one);
  const errors: Failure[] = [];
  const stop = new AbortController();
  let calls = 0;
  const done = watchProvidersFile({
    path: file,
    intervalMs: 5,
    onChange: () => {
      calls += 1;
      throw new Error("no");
    },
    onError: (failure) => void errors.push(failure),
    signal: stop.signal,
  });
  await vi.waitFor(() => expect(errors).toHaveLength(1));
  await writeFile(`${file}.next`, two);
  await rename(`${file}.next`, file);
  await vi.waitFor(() => expect(errors).toHaveLength(2));
  stop.abort();
  await done;
  expect(calls).toBe(2);
});
