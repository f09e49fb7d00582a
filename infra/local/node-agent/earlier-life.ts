import { readdir, readFile, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { PodFiles, removeSharedMemory } from "./pod-files.ts";
import { serviceNameOf } from "./squid-command.ts";

/** Notes which process runs a Pod, for a later agent; with its start, since process ids are used again. */
export async function notePid(files: PodFiles, pid: number): Promise<void> {
  await writeFile(files.pidFile, `${pid} ${await startOf(pid)}`, { mode: 0o600 });
}

/**
 * Ends what an agent left behind that was killed: Squids that the kernel did not end with it (it was killed in the
 * instant of a start), their shared memory, their files. Only processes that were noted and bear the Pod's name.
 */
export async function endEarlierLife(runtimeFolder: string): Promise<void> {
  for (const uid of await readdir(runtimeFolder)) {
    const files = new PodFiles({ runtimeFolder, uid, user: undefined });
    const [pid = 0, start] = (await readOrNothing(files.pidFile)).split(" ").map(Number);
    if (pid > 0 && start === (await startOf(pid)) && (await isSquidOf(pid, uid))) {
      process.kill(pid, "SIGKILL");
      while ((await startOf(pid)) === start) await sleep(20);
    }
    await removeSharedMemory(serviceNameOf(uid));
    await files.remove();
  }
}

async function isSquidOf(pid: number, uid: string): Promise<boolean> {
  return (await readOrNothing(`/proc/${pid}/cmdline`)).split("\0").includes(serviceNameOf(uid));
}

/** When the process started, in kernel ticks; 0 when it does not run. */
async function startOf(pid: number): Promise<number> {
  // pid (name) state ...; the name may hold spaces and brackets. Z and X have ended, somebody only has to notice.
  const fields = (await readOrNothing(`/proc/${pid}/stat`)).replace(/^.*\) /s, "").split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? 0 : Number(fields[19] ?? 0);
}

async function readOrNothing(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    // ESRCH: the process ended while its file was open.
    if (error instanceof Error && "code" in error && ["ENOENT", "ESRCH"].includes(String(error.code))) return "";
    throw error;
  }
}
