import { accessSync, constants } from "node:fs";
import path from "node:path";
import { installPackages } from "./apt.mjs";
import { SetupError } from "./setup-error.mjs";

/** What a tool is called elsewhere. @type {Record<string, {apt: string, elsewhere: string, service: string}>} */
const known = {
  "redis-server": { apt: "redis-server", elsewhere: "redis", service: "redis-server.service" },
  squid: { apt: "squid", elsewhere: "squid", service: "squid.service" },
};

/**
 * Installs with apt what is missing of `tools`. Throws SetupError with the remedy where that is not possible.
 * @param {{
 *   tools: string[], isRoot: boolean, env: NodeJS.ProcessEnv, say: (line: string) => void,
 *   foreground: import("./foreground.mjs").Foreground, system: import("./apt.mjs").SystemFolders,
 * }} deps
 */
export async function installTools({ tools, isRoot, env, say, foreground, system }) {
  const folders = searchPath([], env.PATH, system.programs).split(":");
  const isPresent = (/** @type {string} */ program) =>
    folders.some((folder) => isExecutable(path.join(folder, program)));
  const missing = tools.filter((tool) => !isPresent(tool));
  if (missing.length === 0) return;
  if (!isPresent("apt-get")) throw new SetupError(`${sentence(missing)} ${remedy(missing)}`);
  if (!isRoot) throw new SetupError(`${sentence(missing)} Installing needs root. ${remedy(missing)}`);
  say(
    `Installing ${missing.join(" and ")} with apt: the product and its tests run them as processes of their own. ` +
      "The packages' services are not started.",
  );
  const packages = missing.map((tool) => named(tool).apt);
  const services = missing.map((tool) => named(tool).service);
  const failure = await installPackages({ packages, services, env, say, foreground, system });
  const still = tools.filter((tool) => !isPresent(tool));
  if (still.length > 0) throw new SetupError(`${failure}\n${sentence(still)} ${remedy(still)}`);
}

/**
 * A PATH with `first` in front and `last` at the end, each folder once.
 * @param {string[]} first
 * @param {string | undefined} given
 * @param {string[]} last
 */
export function searchPath(first, given, last) {
  const folders = [...first, ...(given ?? "").split(":"), ...last];
  return [...new Set(folders.filter((folder) => folder !== ""))].join(":");
}

/** @param {string} file */
function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false; // absent or not for us: the same here
  }
}

/** @param {string} tool */
function named(tool) {
  const entry = known[tool];
  if (entry === undefined)
    throw new SetupError(`Nobody knows how to install ${tool}; known are ${Object.keys(known).join(", ")}.`);
  return entry;
}

/** @param {string[]} missing */
function sentence(missing) {
  return `${missing.join(" and ")} ${missing.length === 1 ? "is" : "are"} needed and not installed.`;
}

/** @param {string[]} missing */
function remedy(missing) {
  const apt = missing.map((tool) => named(tool).apt).join(" ");
  const elsewhere = missing.map((tool) => named(tool).elsewhere).join(" ");
  return [
    "Install and run this again:",
    `  Debian, Ubuntu:  sudo apt-get install --no-install-recommends ${apt}`,
    `  Fedora, RHEL:    sudo dnf install ${elsewhere}`,
    `  Alpine:          sudo apk add ${elsewhere}`,
    `  Arch:            sudo pacman -S ${elsewhere}`,
    `  macOS:           brew install ${elsewhere}`,
  ].join("\n");
}
