// The one way into every npm script: makes the checkout runnable (npm packages, system tools, a new enough Node), then
// runs the script. A script of its own, and not npm's `prestart` and `pretest`, because npm leaves those out under
// --ignore-scripts. Plain JavaScript without dependencies: it has to run on Node 18 in a fresh clone.
//
// package.json says `exec`, so that no shell stands between npm and this: a shell dies of the signal that npm passes
// on, and leaves everything below it running.
//
//   node infra/bootstrap/run.mjs [--tools redis-server,squid] <script> [args...]

import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { installDependencies } from "./dependencies.mjs";
import { endBySignal, Foreground, Interrupted } from "./foreground.mjs";
import { chooseNode } from "./node-version.mjs";
import { removeLeftPolicy } from "./service-policy.mjs";
import { SetupError } from "./setup-error.mjs";
import { installTools, searchPath } from "./tools.mjs";

const usage = "usage: node infra/bootstrap/run.mjs [--tools tool,tool] <script> [args...]";
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const systemFolders = {
  // squid lives there; a user's PATH often lacks them.
  programs: ["/usr/local/sbin", "/usr/sbin", "/sbin"],
  servicePolicy: "/usr/sbin/policy-rc.d",
  packageLists: "/var/lib/apt/lists",
  lock: "/run/egress-proxies-tools.lock",
  systemd: "/run/systemd/system",
};

/** @param {string[]} given */
function parseArguments(given) {
  const [first, second, ...others] = given;
  if (first === "--tools" && second !== undefined)
    return { tools: second.split(","), script: others[0], rest: others.slice(1) };
  return { tools: [], script: first, rest: given.slice(1) };
}

/** On stderr: stdout belongs to the script. @param {string} line */
function say(line) {
  process.stderr.write(`${line}\n`);
}

/** @param {string[]} given */
async function main(given) {
  const { tools, script, rest } = parseArguments(given);
  if (script === undefined || script.startsWith("-")) throw new SetupError(usage);
  const foreground = new Foreground();
  const isRoot = process.getuid?.() === 0;

  await installDependencies({ root, foreground, say, env: process.env });
  if (tools.length > 0) {
    if (isRoot) await removeLeftPolicy(systemFolders, foreground);
    await installTools({ tools, isRoot, foreground, say, env: process.env, system: systemFolders });
  }
  foreground.check();
  const node = chooseNode(root);
  const env = {
    ...process.env,
    PATH: searchPath(
      [path.join(root, "node_modules/.bin"), path.dirname(node)],
      process.env.PATH,
      systemFolders.programs,
    ),
  };
  const end = await foreground.run(node, [path.resolve(root, script), ...rest], { cwd: root, env, stdio: "inherit" });
  if (end.signal !== null) endBySignal(end.signal);
  else process.exitCode = end.code ?? 1;
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (error instanceof Interrupted) endBySignal(error.signal);
  else if (error instanceof SetupError) {
    say(error.message);
    process.exitCode = 1;
  } else throw error;
}
