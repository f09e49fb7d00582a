import { chmod, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import path from "node:path";

/** What the fake is told by its environment: to do what it should, to hang or to fail in `go build`, or to be too old. */
export type GoMood = "good" | "hangs" | "fails" | "old";

const goMod = `module k8s.io/kubernetes
go 1.26.0
replace (
	k8s.io/api => ./staging/src/k8s.io/api
)
`;

/**
 * A `go` that builds shell scripts within milliseconds, and writes down what it was asked: in a folder that is meant to be
 * the whole PATH.
 */
export class FakeGo {
  readonly folder: string;
  readonly #callsFile: string;

  private constructor(folder: string) {
    this.folder = folder;
    this.#callsFile = path.join(folder, "calls");
  }

  static async make(dir: string): Promise<FakeGo> {
    const go = new FakeGo(path.join(dir, "bin"));
    await mkdir(go.folder);
    await symlink("/usr/bin/setpriv", path.join(go.folder, "setpriv"));
    await writeFile(path.join(go.folder, "go.mod"), goMod);
    await writeFile(go.#callsFile, "");
    await writeFile(path.join(go.folder, "go"), script(go.folder, go.#callsFile));
    await chmod(path.join(go.folder, "go"), 0o755);
    return go;
  }

  /** Its command lines so far, without the folder of `-C`. */
  async calls(): Promise<string[]> {
    return (await readFile(this.#callsFile, "utf8")).split("\n").filter(Boolean);
  }
}

function script(folder: string, callsFile: string): string {
  return `#!${process.execPath}
const { appendFileSync, chmodSync, writeFileSync } = require("node:fs");
const { spawn } = require("node:child_process");
const args = process.argv.slice(2);
const [command] = args;
// A compiler outlives a go that is killed, for a while.
const compiler = "setInterval(() => process.ppid === " + process.pid + " || process.exit(), 3000)";
const mood = process.env.FAKE_GO;
appendFileSync(${JSON.stringify(callsFile)}, command + " " + args.at(-1) + "\\n");
if (command === "version") console.log(mood === "old" ? "go version go1.20 linux/amd64" : "go version go1.26.8 linux/amd64");
else if (command === "mod" && mood === "old") fail("go: k8s.io/kubernetes requires go >= 1.26.0 (running go 1.20)");
else if (command === "mod") console.log(JSON.stringify({ GoMod: ${JSON.stringify(path.join(folder, "go.mod"))} }));
else if (command === "build" && mood === "fails") fail("ld: out of memory");
else if (command === "build" && mood === "hangs") {
  spawn(process.execPath, ["--eval", compiler, "--", "compile-of-" + ${JSON.stringify(folder)}]);
  setInterval(() => 0, 1000);
} else if (command === "build") {
  const out = args[args.indexOf("-o") + 1];
  writeFileSync(out, "#!/bin/sh\\n");
  chmodSync(out, 0o755);
}
function fail(why) {
  console.error(why);
  process.exitCode = 1;
}
`;
}
