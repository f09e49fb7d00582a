import { readdir, readFile, readlink } from "node:fs/promises";
import path from "node:path";

export interface OwnProcess {
  pid: number;
  argv: string[];
}

/** In the environment of everything that one installation starts: other runs on the machine are told apart by it. */
export const markVariable = "EGRESS_PROXIES_TEST_MARK";

/**
 * The processes of one installation that run now, whoever their parent is. Redis overwrites its environment with its
 * title, so it is known by its folder.
 */
export async function ownProcesses(mark: string, dir: string): Promise<OwnProcess[]> {
  const pids = (await readdir("/proc")).map(Number).filter((pid) => pid > 0);
  const found = await Promise.all(pids.map((pid) => lookAt(pid, mark, dir)));
  return found.filter((each) => each !== undefined);
}

async function lookAt(pid: number, mark: string, dir: string): Promise<OwnProcess | undefined> {
  try {
    const environment = (await readFile(`/proc/${pid}/environ`, "utf8")).split("\0");
    const isOurs = environment.includes(`${markVariable}=${mark}`) || isBelow(await readlink(`/proc/${pid}/cwd`), dir);
    if (!isOurs) return undefined;
    const argv = (await readFile(`/proc/${pid}/cmdline`, "utf8")).split("\0").slice(0, -1);
    // A process that has ended, and that nobody has waited for yet, has no arguments.
    return argv.length === 0 ? undefined : { pid, argv };
  } catch {
    return undefined; // ended meanwhile, or somebody else's
  }
}

function isBelow(folder: string, dir: string): boolean {
  return folder.startsWith(`${dir}${path.sep}`);
}
