import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { testContext } from "#test/process-context.ts";
import { FollowedProvidersFile } from "./providers.ts";

const file = (...names: string[]): string =>
  JSON.stringify({ providers: names.map((name) => ({ name, type: "kubernetes" })) });

async function setUp() {
  const folder = await mkdtemp(path.join(tmpdir(), "providers-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const location = path.join(folder, "providers.yaml");
  await writeFile(location, file("lab"));
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
  return { location, lines, context, role };
}

test("every role of a process is told of the file and its changes, and the log says each thing once", async () => {
  const { location, lines, context, role } = await setUp();
  const [first, second] = [await role(), await role()];
  await writeFile(location, file("lab", "other"));
  await expect.poll(() => first).toEqual([["lab"], ["lab", "other"]]);
  expect(second).toEqual(first);
  await writeFile(location, "providers: 1");
  await expect.poll(() => lines.filter((line) => line.includes("is bad"))).toHaveLength(1);
  expect(lines.filter((line) => line.includes("was reloaded"))).toHaveLength(1);
  expect(await context.metrics.registry.metrics()).toContain('proxy_operator_problems_total{kind="providers-file"} 1');
});

test("a role that cannot take a change does not keep it from the others", async () => {
  const { location, lines, role } = await setUp();
  await role((names) => {
    if (names.length > 1) throw new Error("cannot be built");
  });
  const other = await role();
  await writeFile(location, file("lab", "other"));
  await expect.poll(() => other).toHaveLength(2);
  await expect.poll(() => lines.join("")).toContain("cannot be built");
});
