import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { lstat, mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Failure } from "#shared/errors/failure.ts";

/**
 * Makes the folder for what running Pods need: configs, credentials, logs. Not in the data folder `dir`, but the same
 * one whenever that is: Squid, run as user `proxy`, may be unable to reach a checkout in a home folder, and squid.conf
 * cannot name a path with a space. Throws Permanent `FolderTaken` when somebody else has made it.
 */
export async function makeRuntimeFolder(dir: string): Promise<string> {
  const uid = process.getuid?.() ?? 0;
  const candidates = uid === 0 ? ["/run"] : [process.env["XDG_RUNTIME_DIR"] ?? ""];
  const parent = candidates.find((each) => each !== "" && existsSync(each)) ?? tmpdir();
  const name = `egress-proxies-${createHash("sha256").update(path.resolve(dir)).digest("hex").slice(0, 12)}`;
  const folder = path.join(parent, name);
  // Others, such as user `proxy`, may pass through, not look around.
  await mkdir(folder, { mode: 0o711 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  const found = await lstat(folder);
  if (found.isDirectory() && found.uid === uid && (found.mode & 0o022) === 0) return folder;
  throw new Failure({
    class: "Permanent",
    code: "FolderTaken",
    message: `${folder} belongs to somebody else or may be written by others: remove it, then start again.`,
  });
}
