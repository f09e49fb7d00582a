import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.join(import.meta.dirname, "../..");

/** Layer (the longest prefix wins) -> what it may import besides itself. The table of design and docs/architecture.md. */
const base = ["shared/model", "shared/errors"];
const layers: Record<string, readonly string[]> = {
  "shared/model": [],
  "shared/errors": [],
  "shared/redis": base,
  "shared/domain": base,
  "shared/jobs": [...base, "shared/redis"],
  "shared/cluster": base,
  "shared/fleet": [...base, "shared/redis"],
  "shared/lease": [...base, "shared/redis"],
  "shared/provider": base,
  "shared/provider/factory.ts": [...base, "shared/provider", "shared/cluster"],
  "shared/provider/kubernetes": [...base, "shared/provider", "shared/cluster"],
  "shared/telemetry": base,
  "shared/process": [...base, "shared/telemetry", "shared/redis"],
  "functions/watcher": ["shared"],
  "functions/reconcile": ["shared"],
  "functions/health-probe": ["shared"],
  "functions/lease": ["shared"],
  "functions/lease-api": ["shared"],
  "functions/run.ts": ["shared", "functions"],
  "functions/roles": ["shared", "functions"],
};

/** Outside systems live behind one folder each. */
const packages: Record<string, readonly string[]> = {
  bullmq: ["shared/jobs"],
  ioredis: ["shared/redis", "shared/jobs", "shared/fleet", "shared/lease"],
  "@kubernetes/client-node": ["shared/cluster", "shared/provider/kubernetes"],
  undici: ["shared/cluster"],
  fastify: ["functions/lease-api"],
  "prom-client": ["shared/telemetry"],
  pino: ["shared/telemetry"],
  "pino-pretty": ["shared/telemetry"],
};
const pure = ["shared/model", "shared/errors", "shared/domain"];
const pureMayImport: Record<string, readonly string[]> = {
  "shared/model": ["zod"],
  "shared/errors": [],
  "shared/domain": ["node:crypto"],
};
const banned = /(^|\/)(utils?|helpers?|common|misc|lib|types\.ts|index\.ts)(\/|$)/;

interface Import {
  file: string;
  target: string;
}

const importPattern =
  /(?:^|\n)\s*(?:import|export)\b[^;]*?\bfrom\s+"([^"]+)"|\bimport\(\s*"([^"]+)"|(?:^|\n)import\s+"([^"]+)"/g;
const files = globSync("{functions,shared}/**/*.ts", { cwd: root }).filter((file) => !file.endsWith(".test.ts"));
const imports = files.flatMap(importsOf);

function importsOf(file: string): Import[] {
  const text = readFileSync(path.join(root, file), "utf8");
  return [...text.matchAll(importPattern)].map((match) => ({
    file,
    target: resolve(file, match[1] ?? match[2] ?? match[3] ?? ""),
  }));
}

function resolve(file: string, specifier: string): string {
  if (specifier.startsWith("#")) return specifier.slice(1);
  return specifier.startsWith(".") ? path.posix.join(path.posix.dirname(file), specifier) : specifier;
}

const under = (file: string, layer: string): boolean => file === layer || file.startsWith(`${layer}/`);
const isOurs = (target: string): boolean => /^(functions|shared|infra|test)\//.test(target);

function layerOf(file: string): string | undefined {
  return Object.keys(layers)
    .filter((layer) => under(file, layer))
    .sort((a, b) => b.length - a.length)[0];
}

function allowed({ file, target }: Import): boolean {
  const layer = layerOf(file);
  if (layer === undefined) return false;
  return [layer, ...(layers[layer] ?? [])].some((each) => under(target, each));
}

test("the scan sees the code: a guard that sees nothing passes everything", () => {
  expect(files.length).toBeGreaterThan(60);
  expect(imports.length).toBeGreaterThan(200);
});

test("every folder is in the table", () => {
  expect(files.filter((file) => layerOf(file) === undefined)).toEqual([]);
});

test("imports go one way", () => {
  const wrong = imports.filter((each) => isOurs(each.target) && !allowed(each));
  expect(wrong.map(({ file, target }) => `${file} must not import ${target}`)).toEqual([]);
});

test("each outside system is imported by its own folder alone", () => {
  const wrong = imports.filter(({ file, target }) => packages[target]?.some((layer) => under(file, layer)) === false);
  expect(wrong.map(({ file, target }) => `${file} must not import ${target}`)).toEqual([]);
});

test("what is pure imports nothing that could do something", () => {
  const wrong = imports.filter(({ file, target }) => {
    const layer = pure.find((each) => under(file, each));
    return layer !== undefined && !isOurs(target) && pureMayImport[layer]?.includes(target) === false;
  });
  expect(wrong.map(({ file, target }) => `${file} must not import ${target}`)).toEqual([]);
});

test("the environment is read where a process begins, and nowhere else", () => {
  const readers = files.filter((file) => /process\.env\b/.test(readFileSync(path.join(root, file), "utf8")));
  // The second one asks whether this is a Pod: a convention of Kubernetes, not a setting.
  expect(readers.sort()).toEqual(["functions/run.ts", "shared/cluster/kubeconfig.ts"]);
});

test("no folder or file is a drawer for anything", () => {
  expect(files.filter((file) => banned.test(file))).toEqual([]);
});
