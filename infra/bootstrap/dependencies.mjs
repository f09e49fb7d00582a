import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { withLock } from "./lock.mjs";
import { SetupError } from "./setup-error.mjs";

/**
 * Runs `npm ci` unless node_modules already holds what package-lock.json asks for on this platform; a user's own
 * `npm ci` or `npm install` counts. Throws SetupError when npm is missing or fails.
 * @param {{root: string, foreground: import("./foreground.mjs").Foreground, say: (line: string) => void, env: NodeJS.ProcessEnv}} deps
 */
export async function installDependencies({ root, foreground, say, env }) {
  if (isInstalled(root)) return;
  const onWait = (/** @type {number} */ pid) =>
    say(`Waiting for process ${pid}, which is installing the npm packages.`);
  const check = () => foreground.check();
  await withLock(path.join(root, ".local/bootstrap.lock"), { onWait, check }, async () => {
    if (isInstalled(root)) return;
    say("Installing the npm packages (npm ci); this happens once and takes about a minute.");
    const [command, ...args] = npmCommand(env);
    // A production setting of the user's must not leave out the tests' packages, nor Node itself, which is optional.
    args.push(
      "ci",
      "--include=dev",
      "--include=optional",
      "--no-audit",
      "--no-fund",
      "--no-progress",
      "--loglevel=error",
    );
    const end = await foreground
      .run(command, args, { cwd: root, env, stdio: ["ignore", "ignore", "inherit"] })
      .catch((/** @type {Error} */ error) => {
        throw new SetupError(
          `npm could not be started (${error.message}). Install npm 10 or later, then run this again.`,
        );
      });
    foreground.check();
    if (end.code !== 0)
      throw new SetupError("npm ci failed: see its message above. Run `npm ci` by hand, then run this again.");
    writeStamp(root);
  });
}

/**
 * The npm that runs us, under the Node that runs it: under `npx npm@12 test` that is not the one on the PATH.
 * @param {NodeJS.ProcessEnv} env
 * @returns {[string, ...string[]]}
 */
function npmCommand(env) {
  const own = env.npm_execpath;
  if (own !== undefined && path.basename(own) === "npm-cli.js") return [env.npm_node_execpath ?? process.execPath, own];
  return ["npm"];
}

/** @param {string} root */
function isInstalled(root) {
  const wanted = readOrNothing(path.join(root, "package-lock.json"));
  if (wanted === undefined)
    throw new SetupError(`${root} has no package-lock.json: is this a checkout of the repository?`);
  // npm itself notes here what it has installed, as its last step.
  const installed = readOrNothing(path.join(root, "node_modules/.package-lock.json"));
  if (installed === undefined) return false;
  if (readOrNothing(stampFile(root)) === stampOf(wanted, installed)) return true;
  return holdsAll(wanted, installed);
}

/** @param {string} wanted @param {string} installed both as npm writes them */
function holdsAll(wanted, installed) {
  const present = packagesOf(installed);
  return Object.entries(packagesOf(wanted)).every(
    ([folder, entry]) => folder === "" || !isRequiredHere(entry) || present[folder]?.version === entry.version,
  );
}

/**
 * @typedef {{version?: string, optional?: boolean, os?: string | string[], cpu?: string | string[], libc?: string[]}} LockedPackage
 * @param {string} lockfile
 * @returns {Record<string, LockedPackage>}
 */
function packagesOf(lockfile) {
  /** @type {unknown} */
  const parsed = JSON.parse(lockfile);
  return isLockfile(parsed) ? parsed.packages : {};
}

/** npm's own format since npm 7. @param {unknown} parsed @returns {parsed is {packages: Record<string, LockedPackage>}} */
function isLockfile(parsed) {
  return typeof parsed === "object" && parsed !== null && "packages" in parsed;
}

/**
 * Of the optional packages those are required that are built for this platform. (Which C library is not judged: finding
 * out costs more than it is worth. And what npm gave up on, the stamp covers.)
 * @param {LockedPackage} entry
 */
function isRequiredHere({ optional, os, cpu, libc }) {
  if (optional !== true) return true;
  return [os].flat().includes(process.platform) && [cpu].flat().includes(process.arch) && libc === undefined;
}

/** @param {string} root */
function writeStamp(root) {
  const read = (/** @type {string} */ file) => readFileSync(path.join(root, file), "utf8");
  writeFileSync(stampFile(root), stampOf(read("package-lock.json"), read("node_modules/.package-lock.json")));
}

/** Ties what was asked for to what is there, so a change of either is noticed. @param {string[]} contents */
function stampOf(...contents) {
  const hash = createHash("sha256");
  for (const content of contents) hash.update(content).update("\0");
  return `${process.platform}-${process.arch} ${hash.digest("hex")}\n`;
}

/** @param {string} root */
function stampFile(root) {
  return path.join(root, "node_modules/.egress-proxies-stamp");
}

/** @param {string} file */
function readOrNothing(file) {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
