import { readFile, writeFile } from "node:fs/promises";
import { Failure } from "#shared/errors/failure.ts";
import { isPortFree } from "../free-port.ts";

const [first, last] = [9, 99];

/**
 * The address of this folder's echo site, 127.0.0.9 to 127.0.0.99: the first whose ports are free, so that two
 * installations fit on one machine. Kept in `file`, since the providers file and running proxies name it. Throws
 * `PortInUse` when the kept one, or every one, is in use; `dir` is for the message.
 */
export async function chooseEchoHost(options: {
  file: string;
  dir: string;
  ports: readonly number[];
}): Promise<string> {
  const { file, dir, ports } = options;
  const kept = (await readFile(file, "utf8").catch(nothingIfMissing)).trim();
  if (kept !== "") {
    const taken = await firstTaken(kept, ports);
    if (taken === undefined) return kept;
    throw inUse(
      `Port ${taken} of ${kept}, which the echo site of this folder had before, is in use: stop what uses it (another npm start?), or remove ${dir} to begin anew.`,
    );
  }
  for (let number = first; number <= last; number += 1) {
    const host = `127.0.0.${number}`;
    if ((await firstTaken(host, ports)) !== undefined) continue;
    await writeFile(file, `${host}\n`);
    return host;
  }
  throw inUse(
    `Port ${ports.join(" or ")} is in use on every address from 127.0.0.${first} to 127.0.0.${last}: something listens on all addresses; stop it, then start again.`,
  );
}

async function firstTaken(host: string, ports: readonly number[]): Promise<number | undefined> {
  for (const port of ports) if (!(await isPortFree(host, port))) return port;
  return undefined;
}

function nothingIfMissing(error: NodeJS.ErrnoException): string {
  if (error.code === "ENOENT") return "";
  throw error;
}

function inUse(message: string): Failure {
  return new Failure({ class: "Permanent", code: "PortInUse", message });
}
