import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { kubectl } from "#test/kubectl.ts";

const root = path.join(import.meta.dirname, "../../..");

/**
 * Runs what a page prints for a shell beside `npm start`, as printed but for the port of the lease API, in a folder
 * whose `.local` is `dir`. Rejects with the output when a line fails. Lines that install, start something that stays, or
 * make a token are left out.
 */
export async function runPrintedLines(page: string, at: { dir: string; leasePort: number }): Promise<string> {
  const text = await readFile(path.join(root, page), "utf8");
  const blocks = [...text.matchAll(/```sh\n(.*?)```/gs)].map(([, block = ""]) => block);
  const lines = blocks.filter((block) => !/^npm |run\.ts/m.test(block)).join("\n");
  const script = `set -e\n${lines.replaceAll("127.0.0.1:8090", `127.0.0.1:${at.leasePort}`)}`;
  const folder = await mkdtemp(path.join(tmpdir(), "printed-"));
  try {
    await symlink(at.dir, path.join(folder, ".local"));
    const env = { PATH: `${path.dirname(await kubectl("1.32"))}:${process.env["PATH"]}`, HOME: folder };
    const { stdout } = await promisify(execFile)("sh", ["-c", script], { cwd: folder, env, timeout: 50_000 });
    return stdout;
  } finally {
    await rm(folder, { recursive: true });
  }
}
