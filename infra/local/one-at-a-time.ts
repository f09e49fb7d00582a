import { readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { Failure } from "#shared/errors/failure.ts";

/**
 * Keeps a second start out of the same folder. Returns what lets go of it. Throws `AlreadyRunning`, naming the process.
 * A lock whose process is gone counts for nothing.
 */
export async function takeFolder(dir: string): Promise<() => Promise<void>> {
  const file = lockFile(dir);
  const mine = `${process.pid} ${await startTime(process.pid)}\n`;
  for (;;) {
    try {
      await writeFile(file, mine, { flag: "wx" });
      return () => rm(file, { force: true });
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    }
    await refuseIfTaken(dir);
    await rm(file, { force: true });
  }
}

/** Throws `AlreadyRunning`, naming the process, while one runs in this folder. Writes nothing. */
export async function refuseIfTaken(dir: string): Promise<void> {
  const text = await readFile(lockFile(dir), "utf8").catch(() => ""); // not there, or let go of in this moment
  const [pid = "", started] = text.trim().split(" ");
  if (started === undefined || (await startTime(Number(pid))) !== started) return;
  const message = `npm start is running in this folder already (process ${pid}): stop it first, or use --dir for another folder.`;
  throw new Failure({ class: "Permanent", code: "AlreadyRunning", message });
}

function lockFile(dir: string): string {
  return path.join(dir, "running.pid");
}

/** When a process began, in the kernel's ticks: tells it from a later one with the same id. Undefined: there is none. */
async function startTime(pid: number): Promise<string | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    // The name, in brackets, may hold spaces; the rest counts from its end.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}
