import { chown, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import type { AgentPod } from "./agent-pod.ts";
import type { Mounted } from "./squid-command.ts";

/** A Secret's files by name. */
export type SecretFiles = Readonly<Record<string, Uint8Array>>;

export interface PodUser {
  uid: number;
  gid: number;
}

/** Where a running Pod's files lie. Paths without spaces, since squid.conf knows none. */
export class PodFiles {
  readonly folder: string;
  readonly #user: PodUser | undefined;

  /** `user`: who must be able to read the files, when that is not us. */
  constructor(options: { runtimeFolder: string; uid: string; user: PodUser | undefined }) {
    this.folder = path.join(options.runtimeFolder, options.uid);
    this.#user = options.user;
  }

  get logFile(): string {
    return path.join(this.folder, "squid.log");
  }

  get pidFile(): string {
    return path.join(this.folder, "squid.pid");
  }

  /**
   * Writes the volumes that the Pod's container mounts, anew: Secrets as files, `emptyDir` as empty folders. Every
   * Secret's file passes `edit` first, which gets all mounts. Other kinds of volumes do not exist here.
   */
  async writeVolumes(
    pod: AgentPod,
    secrets: ReadonlyMap<string, SecretFiles>,
    edit: (file: Uint8Array, name: string, mounts: readonly Mounted[]) => Uint8Array,
  ): Promise<Mounted[]> {
    await rm(this.folder, { recursive: true, force: true });
    await this.#makeFolder(this.folder);
    const mounts = (pod.spec.containers[0]?.volumeMounts ?? []).map(({ name, mountPath }) => ({
      name,
      mountPath,
      folder: path.join(this.folder, `volume-${name}`),
    }));
    for (const mount of mounts) {
      await this.#makeFolder(mount.folder);
      const secretName = pod.spec.volumes.find(({ name }) => name === mount.name)?.secret?.secretName;
      const files = secretName === undefined ? {} : (secrets.get(secretName) ?? {});
      for (const [name, content] of Object.entries(files)) {
        await this.#write(path.join(mount.folder, path.basename(name)), edit(content, name, mounts));
      }
    }
    return mounts;
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  async #makeFolder(folder: string): Promise<void> {
    await mkdir(folder, { mode: 0o700 });
    if (this.#user !== undefined) await chown(folder, this.#user.uid, this.#user.gid);
  }

  async #write(file: string, content: Uint8Array): Promise<void> {
    await writeFile(file, content, { mode: 0o600 });
    if (this.#user !== undefined) await chown(file, this.#user.uid, this.#user.gid);
  }
}

/** Squid leaves its shared memory behind when it is killed: whoever ends it removes that. */
export async function removeSharedMemory(serviceName: string): Promise<void> {
  for (const file of await readdir("/dev/shm")) {
    if (file.startsWith(`${serviceName}-`)) await rm(path.join("/dev/shm", file), { force: true });
  }
}
