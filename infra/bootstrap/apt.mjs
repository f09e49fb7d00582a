import { existsSync, readdirSync } from "node:fs";
import { withLock } from "./lock.mjs";
import { withoutServiceStarts } from "./service-policy.mjs";

/**
 * Where the machine keeps what an installation touches; tests name folders of their own.
 * @typedef {{
 *   programs: string[], servicePolicy: string, packageLists: string, lock: string, systemd: string,
 * }} SystemFolders
 */

/**
 * Installs Debian packages without a question and without starting their services, now or at the next boot. Returns
 * "" or what apt said last; whether the tools are there then is for the caller to see.
 * @param {{
 *   packages: string[], services: string[], env: NodeJS.ProcessEnv, say: (line: string) => void,
 *   foreground: import("./foreground.mjs").Foreground, system: SystemFolders,
 * }} deps
 */
export async function installPackages({ packages, services, env, say, foreground, system }) {
  // needrestart would restart other services of the machine, or ask.
  const quiet = { ...env, DEBIAN_FRONTEND: "noninteractive", NEEDRESTART_SUSPEND: "1" };
  const aptGet = async (/** @type {string[]} */ ...args) => {
    const end = await run(foreground, "apt-get", ["-o", "DPkg::Lock::Timeout=300", ...args], quiet);
    foreground.check();
    return end;
  };
  const install = () => aptGet("install", "--yes", "--no-install-recommends", ...packages);
  const hooks = {
    onWait: (/** @type {number} */ pid) => say(`Waiting for process ${pid}, which is installing tools.`),
    check: () => foreground.check(),
  };
  return withLock(system.lock, hooks, () =>
    withoutServiceStarts(system.servicePolicy, async () => {
      const fresh = !hasLists(system.packageLists);
      if (fresh) await aptGet("update");
      let end = await install();
      if (end.code !== 0 && !fresh) {
        await aptGet("update"); // lists that are too old name versions that are gone
        end = await install();
      }
      if (end.code !== 0) return `apt-get install failed (exit code ${end.code}):\n${lastLines(end.output)}`;
      if (existsSync(system.systemd)) await keepFromBooting(services, foreground, quiet, say);
      return "";
    }),
  );
}

/**
 * The policy file only stops the start right after the installation: systemd would start the services at the next boot.
 * @param {string[]} services
 * @param {import("./foreground.mjs").Foreground} foreground
 * @param {NodeJS.ProcessEnv} env
 * @param {(line: string) => void} say
 */
async function keepFromBooting(services, foreground, env, say) {
  const end = await run(foreground, "systemctl", ["disable", ...services], env);
  if (end.code !== 0) say(`The services could not be disabled: sudo systemctl disable ${services.join(" ")}`);
}

/**
 * @param {import("./foreground.mjs").Foreground} foreground
 * @param {string} command
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} env
 */
async function run(foreground, command, args, env) {
  try {
    return await foreground.run(command, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    return { code: -1, signal: null, output: String(error) };
  }
}

/** @param {string} folder */
function hasLists(folder) {
  return existsSync(folder) && readdirSync(folder).some((name) => name.includes("_Packages"));
}

/** @param {string} output */
function lastLines(output) {
  return output.trimEnd().split("\n").slice(-15).join("\n");
}
