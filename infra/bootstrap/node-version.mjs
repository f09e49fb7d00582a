import { spawnSync } from "node:child_process";
import path from "node:path";
import process from "node:process";
import { SetupError } from "./setup-error.mjs";

// The first Node that strips types without a flag and calls that stable.
const oldest = { major: 24, minor: 12 };

/**
 * The Node that runs the scripts: the one that npm installed into the checkout, else the one that runs this. (Not
 * looked for in node_modules/.bin: where the packages for two processors name the same program, npm 10 takes the link
 * away again together with the package that does not fit.)
 * Throws SetupError when both are too old.
 * @param {string} root
 */
export function chooseNode(root) {
  const installed = path.join(root, `node_modules/node-${process.platform}-${process.arch}/bin/node`);
  // Asked, not read from its package.json: a Node for another C library is there but does not start.
  const answer = spawnSync(installed, ["--version"], { encoding: "utf8", timeout: 10_000 });
  if (answer.status === 0 && isNewEnough(answer.stdout.trim())) return installed;
  if (isNewEnough(process.version)) return process.execPath;
  throw new SetupError(
    `Node ${oldest.major}.${oldest.minor} or later is needed; this one is ${process.version}. On Linux (x64, arm64, glibc) npm installs it ` +
      "into node_modules, but that one does not start here. Install Node 24 from https://nodejs.org, then run this again.",
  );
}

/** @param {string} version such as v24.12.0 */
export function isNewEnough(version) {
  const match = /^v(\d+)\.(\d+)\./.exec(version);
  if (match === null) return false;
  const [major, minor] = [Number(match[1]), Number(match[2])];
  return major > oldest.major || (major === oldest.major && minor >= oldest.minor);
}
