import { fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { RunningParts } from "#shared/process/stop.ts";
import { tokensFile } from "#test/lease-api.ts";

const serverReady = z.object({ apiPort: z.int(), barePort: z.int() });
const startMs = 15_000;

export interface LeaseServer {
  /** Origins. */
  api: string;
  bare: string;
  /** A token that may lease. */
  token: string;
}

/** Starts `lease-server.ts`. Rejects when it does not serve within 15 s. */
export async function startLeaseServer(parts: RunningParts, redisUrl: string): Promise<LeaseServer> {
  const dir = await mkdtemp(path.join(tmpdir(), "bench-lease-"));
  parts.add("tokens file", () => rm(dir, { recursive: true, force: true }));
  const token = randomBytes(16).toString("hex");
  const tokens = path.join(dir, "tokens.yaml");
  await writeFile(tokens, tokensFile([{ name: "bench", secret: token, scopes: ["lease"] }]));

  const child = fork(fileURLToPath(new URL("./lease-server.ts", import.meta.url)), [redisUrl, tokens], {
    execArgv: [],
  });
  const exited = once(child, "exit");
  parts.add("lease server", async () => {
    child.kill("SIGKILL");
    await exited;
  });
  const died = exited.then(() => Promise.reject(new Error("the lease server ended before it served")));
  const ready = once(child, "message", { signal: AbortSignal.timeout(startMs) });
  const message: unknown = (await Promise.race([ready, died]))[0];
  const { apiPort, barePort } = serverReady.parse(message);
  return { api: `http://127.0.0.1:${apiPort}`, bare: `http://127.0.0.1:${barePort}`, token };
}
