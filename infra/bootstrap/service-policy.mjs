import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { withLock } from "./lock.mjs";

// Debian's packages ask this file before they start a service; 101 means "not allowed".
const forbidding =
  "#!/bin/sh\n# Put here by Egress Proxies while it installs packages; removed afterwards.\nexit 101\n";

/**
 * Runs `work` while no newly installed package may start its service. The machine's own policy is put back afterwards,
 * whatever happens. The caller holds the tools lock.
 * @template T
 * @param {string} file usually /usr/sbin/policy-rc.d
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withoutServiceStarts(file, work) {
  if (existsSync(file)) renameSync(file, savedAs(file));
  writeFileSync(file, forbidding, { mode: 0o755 });
  try {
    return await work();
  } finally {
    restore(file);
  }
}

/**
 * Puts back the machine's own policy where an earlier run was killed before it could.
 * @param {{servicePolicy: string, lock: string}} system
 * @param {import("./foreground.mjs").Foreground} foreground
 */
export async function removeLeftPolicy({ servicePolicy, lock }, foreground) {
  if (!isLeft(servicePolicy)) return;
  const hooks = { onWait: () => undefined, check: () => foreground.check() };
  // Under the lock: a run that is installing right now needs its policy.
  await withLock(lock, hooks, async () => {
    if (isLeft(servicePolicy)) restore(servicePolicy);
  });
}

/** @param {string} file */
function isLeft(file) {
  return existsSync(savedAs(file)) || (existsSync(file) && readFileSync(file, "utf8") === forbidding);
}

/** @param {string} file */
function restore(file) {
  if (existsSync(savedAs(file))) renameSync(savedAs(file), file);
  else rmSync(file, { force: true });
}

/** @param {string} file */
function savedAs(file) {
  return `${file}.before-egress-proxies`;
}
