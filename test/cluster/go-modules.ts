import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { setInterval } from "node:timers/promises";
import { promisify } from "node:util";
import { z } from "zod";
import { startBoundProcess } from "#infra/local/bound-process.ts";
import { versions } from "./binaries.ts";

const progressMs = 5_000;

export interface GoDeps {
  /** An empty folder for the module, Go's temporary files and its log. */
  work: string;
  /** Told how far it is. */
  say: (line: string) => void;
  signal: AbortSignal;
}

/**
 * Builds etcd and kube-apiserver from their Go modules into the folder `out`. Rejects with what Go said last, with the
 * remedy when there is no Go, and with the signal's reason when that is aborted.
 */
export async function buildFromModules(out: string, deps: GoDeps): Promise<void> {
  const found = await requireGo(deps);
  try {
    await build(out, deps);
  } catch (error) {
    const [, wanted] = /requires go >= (\S+)/.exec(error instanceof Error ? error.message : "") ?? [];
    if (wanted === undefined) throw error;
    const remedy = "install that, or let Go fetch it: export GOTOOLCHAIN=auto (Go 1.21 and later can)";
    throw new Error(`Kubernetes ${versions.kubernetes} needs Go ${wanted} or later, and this is ${found}: ${remedy}`, {
      cause: error,
    });
  }
}

async function build(out: string, deps: GoDeps): Promise<void> {
  await mkdir(path.join(deps.work, "tmp"));
  await writeFile(path.join(deps.work, "go.mod"), await goMod(deps));
  // Before building: it raises grpc, and a raise after a build rebuilds everything.
  await go("get", [`go.etcd.io/etcd/server/v3@v${versions.etcd}`], "Fetching modules", deps);
  const compile = (target: string, ldflags: string, name: string): Promise<void> => {
    const args = ["-v", "-trimpath", "-ldflags", `-s -w ${ldflags}`, "-o", path.join(out, name), target];
    return go("build", args, `Building ${name}`, deps);
  };
  await compile("go.etcd.io/etcd/server/v3", "", "etcd");
  const [major, minor] = versions.kubernetes.split(".");
  const stamps = { gitVersion: `v${versions.kubernetes}`, gitMajor: major, gitMinor: minor };
  const ldflags = Object.entries(stamps).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
  await compile("k8s.io/kubernetes/cmd/kube-apiserver", ldflags.join(" "), "kube-apiserver");
}

/** Answers with what it says of itself, e.g. `go version go1.26.8 linux/amd64`. */
async function requireGo({ work, signal }: GoDeps): Promise<string> {
  try {
    return (await promisify(execFile)("go", ["version"], { cwd: work, signal })).stdout.trim();
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    throw new Error(
      [
        "Go is needed, once, to build etcd and kube-apiserver, and is not installed. Either",
        "  install Go 1.26 or later (https://go.dev/dl) and run this again, or",
        "  set KUBEBUILDER_ASSETS to a folder that holds both: export KUBEBUILDER_ASSETS=$(setup-envtest use -p path)",
      ].join("\n"),
      { cause: error },
    );
  }
}

/** k8s.io/kubernetes requires its staging modules at v0.0.0 and replaces them by folders of its repository: here, by releases. */
async function goMod(deps: GoDeps): Promise<string> {
  const line = { args: ["mod", "download", "-json", `k8s.io/kubernetes@v${versions.kubernetes}`], cwd: deps.work };
  deps.say(`Fetching k8s.io/kubernetes ${versions.kubernetes}`);
  const options = { cwd: line.cwd, signal: deps.signal, env: { ...process.env, ...goEnv(deps.work) } };
  const { stdout } = await promisify(execFile)("go", line.args, options);
  const { GoMod } = z.object({ GoMod: z.string() }).parse(JSON.parse(stdout));
  const upstream = await readFile(GoMod, "utf8");
  const staging = [...upstream.matchAll(/^\s*(k8s\.io\/\S+) => \.\/staging/gm)].map(([, name]) => name);
  const release = `v0${versions.kubernetes.slice(1)}`;
  return [
    "module control-plane",
    ...(upstream.match(/^go .*$/m) ?? []),
    `require k8s.io/kubernetes v${versions.kubernetes}`,
    ...staging.map((name) => `replace ${name} => ${name} ${release}`),
  ].join("\n");
}

function goEnv(work: string): Record<string, string> {
  const flags = [process.env["GOFLAGS"], "-mod=mod"].filter((flag) => flag !== undefined && flag !== "");
  return { GOFLAGS: flags.join(" "), GOWORK: "off", GOTMPDIR: path.join(work, "tmp") };
}

/** Runs one go command; says every few seconds what Go is at. */
async function go(command: string, args: string[], what: string, deps: GoDeps): Promise<void> {
  const logFile = path.join(deps.work, "go.log");
  const child = await startBoundProcess({
    command: "go",
    args: [command, "-C", deps.work, ...args],
    logFile,
    env: goEnv(deps.work),
  });
  // The whole group: go's compilers would finish their package first.
  const kill = (): void => void process.kill(-child.pid, "SIGKILL");
  const over = new AbortController();
  deps.signal.addEventListener("abort", kill, { once: true });
  if (deps.signal.aborted) kill();
  const telling = tell(what, logFile, deps.say, over.signal);
  const { code, reason } = await child.ended;
  deps.signal.removeEventListener("abort", kill);
  over.abort();
  await telling;
  deps.signal.throwIfAborted();
  if (code !== 0) throw new Error(`go ${command}: ${reason}`);
}

async function tell(what: string, logFile: string, say: GoDeps["say"], signal: AbortSignal): Promise<void> {
  const start = performance.now();
  say(what);
  try {
    for await (const _ of setInterval(progressMs, undefined, { signal })) {
      const lines = (await readFile(logFile, "utf8")).trim().split("\n");
      const seconds = Math.round((performance.now() - start) / 1000);
      say(`${what}: ${seconds} s, ${lines.length} packages, now ${lines.at(-1)?.replace(/^go: downloading /, "")}`);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
