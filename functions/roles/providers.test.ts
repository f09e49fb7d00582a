import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { testContext } from "#test/process-context.ts";
import { FollowedProvidersFile } from "./providers.ts";

const soon = { timeout: 20_000 };

const file = (...names: string[]): string =>
  JSON.stringify({ providers: names.map((name) => ({ name, type: "kubernetes" })) });

async function setUp() {
  const folder = await mkdtemp(path.join(tmpdir(), "providers-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const location = path.join(folder, "providers.yaml");
  // Whole or not at all: half a file would count as a bad one.
  const write = async (text: string): Promise<void> => {
    await writeFile(`${location}.new`, text);
    await rename(`${location}.new`, location);
  };
  await write(file("lab"));
  const { context, lines } = testContext();
  const followed = new FollowedProvidersFile(context, 20);
  const role = async (onNames?: (names: string[]) => void): Promise<string[][]> => {
    const told: string[][] = [];
    await followed.follow(location, (entries) => {
      told.push(entries.map(({ name }) => name));
      onNames?.(entries.map(({ name }) => name));
    });
    return told;
  };
  return { write, lines, context, role };
}

test("every role of a process is told of the file and its changes, and the log says each thing once", async () => {
  const { write, lines, context, role } = await setUp();
  const [first, second] = [await role(), await role()];
  await write(file("lab", "other"));
  await expect.poll(() => first, soon).toEqual([["lab"], ["lab", "other"]]);
  expect(second).toEqual(first);
  await write("providers: 1");
  await expect.poll(() => lines.filter((line) => line.includes("is bad")), soon).toHaveLength(1);
  expect(lines.filter((line) => line.includes("was reloaded"))).toHaveLength(1);
  expect(await context.metrics.registry.metrics()).toContain('proxy_operator_problems_total{kind="providers-file"} 1');
});

test("a role that cannot take a change does not keep it from the others", async () => {
  const { write, lines, role } = await setUp();
  await role((names) => {
    if (names.length > 1) throw new Error("cannot be built");
  });
  const other = await role();
  await write(file("lab", "other"));
  await expect.poll(() => other, soon).toHaveLength(2);
  await expect.poll(() => lines.join(""), soon).toContain("cannot be built");
});
