import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Runs `work` while no other process on this machine holds the lock `folder`. Calls `onWait` with the owner's process
 * id before the first wait, and `check` during it, which may throw.
 *
 * The lock is a folder with one file named after its owner. Taking it is a rename of a prepared folder, which succeeds
 * only where the target is missing or empty. A dead owner's lock is emptied by removing exactly that owner's file. So
 * two processes that both see a dead owner can never remove each other's new lock.
 * @template T
 * @param {string} folder
 * @param {{onWait: (pid: number) => void, check: () => void}} hooks
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withLock(folder, hooks, work) {
  mkdirSync(path.dirname(folder), { recursive: true });
  const owner = `${process.pid}.${startOf(process.pid)}`;
  for (let announced = false; !take(folder, owner); ) {
    hooks.check();
    const living = livingOwner(folder);
    if (living === undefined) continue;
    if (!announced) hooks.onWait(living);
    announced = true;
    await sleep(200);
  }
  try {
    return await work();
  } finally {
    rmSync(path.join(folder, owner), { force: true });
    removeIfEmpty(folder);
  }
}

/** @param {string} folder @param {string} owner */
function take(folder, owner) {
  const prepared = mkdtempSync(`${folder}-`);
  writeFileSync(path.join(prepared, owner), "");
  try {
    renameSync(prepared, folder);
    return true;
  } catch (error) {
    rmSync(prepared, { recursive: true, force: true });
    if (hasCode(error, "ENOTEMPTY", "EEXIST")) return false;
    throw error;
  }
}

/** The process that holds the lock. A dead one's mark is removed on the way. @param {string} folder */
function livingOwner(folder) {
  for (const name of marksIn(folder)) {
    const [pid, start] = name.split(".");
    if (isAlive(Number(pid)) && startOf(Number(pid)) === start) return Number(pid);
    rmSync(path.join(folder, name), { force: true });
  }
  return undefined;
}

/** @param {string} folder */
function marksIn(folder) {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return []; // released in between
    throw error;
  }
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return hasCode(error, "EPERM"); // somebody else's process, alive
  }
}

/** When the process started, in kernel ticks: tells it from a later one with the same number. @param {number} pid */
function startOf(pid) {
  try {
    return (
      readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ")[19] ?? "0"
    );
  } catch {
    return "0"; // no /proc outside Linux: the number alone must do
  }
}

/** @param {string} folder */
function removeIfEmpty(folder) {
  try {
    rmdirSync(folder);
  } catch (error) {
    if (!hasCode(error, "ENOENT", "ENOTEMPTY", "EEXIST")) throw error; // the next owner has it already
  }
}

/** @param {unknown} error @param {...string} codes */
function hasCode(error, ...codes) {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}
