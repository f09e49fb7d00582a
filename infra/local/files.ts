import { createHash, randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import path from "node:path";
import { stringify } from "yaml";
import { type KeyedCertificate, makeAuthority } from "./certificates.ts";

/** What `npm start` keeps in its folder (`.local`), so that a second start resumes. All of it may be deleted. */
export interface LocalFiles {
  dir: string;
  kubeconfig: string;
  providers: string;
  tokens: string;
  authority: string;
  kubernetesData: string;
  redisDir: string;
  podsDir: string;
  productLog: string;
  agentLog: string;
  echoAddress: string;
  identity: string;
}

export function localFiles(dir: string): LocalFiles {
  const at = (name: string): string => path.join(dir, name);
  return {
    dir,
    kubeconfig: at("kubeconfig"),
    providers: at("providers.yaml"),
    tokens: at("lease-tokens.yaml"),
    authority: at("ca.crt"),
    kubernetesData: at("kubernetes.json"),
    redisDir: at("redis"),
    podsDir: at("pods"),
    productLog: at("egress-proxies.log"),
    agentLog: at("node-agent.log"),
    echoAddress: at("echo.address"),
    identity: at("identity"),
  };
}

/** The authority that signs our local servers; made once, so that clients go on trusting it. */
export async function localAuthority(files: LocalFiles): Promise<KeyedCertificate> {
  const keyFile = path.join(files.dir, "ca.key");
  const [certificate, key] = await Promise.all([readIfThere(files.authority), readIfThere(keyFile)]);
  if (certificate !== undefined && key !== undefined) return { certificate, key };
  const made = await makeAuthority();
  await writeFile(keyFile, made.key, { mode: 0o600 });
  await writeFile(files.authority, made.certificate);
  return made;
}

/** A bearer token, made once and kept in a file of its own. */
export async function localToken(files: LocalFiles, name: string): Promise<string> {
  const file = path.join(files.dir, `${name}.token`);
  const kept = (await readIfThere(file))?.trim();
  if (kept) return kept;
  const token = randomBytes(24).toString("base64url");
  await writeFile(file, `${token}\n`, { mode: 0o600 });
  return token;
}

/** The file of the lease API's tokens, with this one, for crawlers. */
export async function writeTokensFile(files: LocalFiles, token: string): Promise<void> {
  const sha256 = createHash("sha256").update(token).digest("hex");
  const tokens = [{ name: "local", sha256, scopes: ["read", "lease"] }];
  await writeFile(files.tokens, stringify({ tokens }), { mode: 0o600 });
}

export interface EchoAddress {
  host: string;
  ports: readonly number[];
  /** Then the proxies are on this machine as well. */
  isLoopback: boolean;
}

/**
 * The providers file, for the user to change; written when it is not there. It opens the echo site to the proxies. False:
 * it is there, and does not name that host.
 */
export async function ensureProvidersFile(files: LocalFiles, echo: EchoAddress): Promise<boolean> {
  const kept = await readIfThere(files.providers);
  if (kept !== undefined) return kept.includes(echo.host);
  const allowDestinations = echo.ports.map((port) => `${echo.host}/32:${port}`);
  const sources = echo.isLoopback ? { allowSources: ["127.0.0.0/8"] } : {};
  const kubernetes = { ...sources, connectPorts: [443, ...echo.ports], allowDestinations };
  const text = stringify({ providers: [{ name: "local", type: "kubernetes", kubernetes }] });
  await writeFile(files.providers, `# Read again within 5 s of a change. See docs/providers.md.\n${text}`);
  return true;
}

/** Who this folder is towards a cluster that others use as well; a new one where none is kept. Writes nothing. */
export async function localIdentity(files: LocalFiles): Promise<string> {
  const kept = (await readIfThere(files.identity))?.trim();
  return kept || `npm-start-${hostname()}-${randomBytes(4).toString("hex")}`;
}

export async function keepIdentity(files: LocalFiles, identity: string): Promise<void> {
  await writeFile(files.identity, `${identity}\n`);
}

/** The folder in `dir` for one cluster, and one namespace in it: a Redis must never serve two. */
export function clusterFolder(dir: string, server: string, namespace: string): string {
  const digest = createHash("sha256").update(`${server} ${namespace}`).digest("hex");
  return path.join(dir, `cluster-${digest.slice(0, 10)}`);
}

export async function makeFolders(files: LocalFiles): Promise<void> {
  for (const dir of [files.dir, files.redisDir, files.podsDir]) await mkdir(dir, { recursive: true });
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
