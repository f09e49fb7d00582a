import { generateKeyPairSync, randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { Agent, request } from "undici";
import { type BoundProcess, startBoundProcess } from "#infra/local/bound-process.ts";
import { issueCertificate, makeAuthority } from "#infra/local/certificates.ts";
import { freePort } from "#infra/local/free-port.ts";
import { untilReady } from "./etcd.ts";

export interface ApiServerOptions {
  binary: string;
  /** Its own, existing. */
  dir: string;
  etcdUrl: string;
  /** Added to the command line. */
  args: string[];
}

/** What a client needs. The token is of a member of system:masters, who may do everything. */
export interface ApiAccess {
  url: string;
  token: string;
  /** PEM. */
  authority: string;
}

/** A kube-apiserver that can be killed, paused and started again, always at the same address. */
export class ApiServer {
  readonly access: ApiAccess;
  readonly #binary: string;
  readonly #args: string[];
  readonly #logFile: string;
  #process: BoundProcess | undefined;

  private constructor(access: ApiAccess, binary: string, args: string[], logFile: string) {
    [this.access, this.#binary, this.#args, this.#logFile] = [access, binary, args, logFile];
  }

  /** Makes certificates, keys and a token, and starts it. Rejects when it is not ready within 30 s. */
  static async start({ binary, dir, etcdUrl, args }: ApiServerOptions): Promise<ApiServer> {
    const file = (name: string): string => path.join(dir, name);
    const authority = await makeAuthority("Kubernetes of a test");
    const subject = { commonName: "kube-apiserver", altNames: [{ ip: "127.0.0.1" }, { dns: "localhost" }] };
    const tls = await issueCertificate(authority, subject);
    const accounts = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
    const token = randomBytes(24).toString("base64url");
    await writeFile(file("tls.crt"), tls.certificate);
    await writeFile(file("tls.key"), tls.key, { mode: 0o600 });
    await writeFile(file("accounts.key"), accounts.export({ type: "pkcs1", format: "pem" }), { mode: 0o600 });
    await writeFile(file("tokens.csv"), `${token},admin,admin,"system:masters"\n`, { mode: 0o600 });
    const port = await freePort();
    const flags = {
      "etcd-servers": etcdUrl,
      "bind-address": "127.0.0.1",
      "advertise-address": "127.0.0.1",
      // It would publish that address for Pods, which a loopback one is not good for.
      "endpoint-reconciler-type": "none",
      "secure-port": port,
      "tls-cert-file": file("tls.crt"),
      "tls-private-key-file": file("tls.key"),
      "token-auth-file": file("tokens.csv"),
      "authorization-mode": "RBAC",
      "service-account-issuer": "https://kubernetes.default.svc",
      "service-account-key-file": file("accounts.key"),
      "service-account-signing-key-file": file("accounts.key"),
      "service-cluster-ip-range": "10.96.0.0/16",
      "allow-privileged": true,
      // It would write logs and certificates of its own next to them.
      "cert-dir": dir,
    };
    const given = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    const access = { url: `https://127.0.0.1:${port}`, token, authority: authority.certificate };
    const server = new ApiServer(access, binary, [...given, ...args], file("kube-apiserver.log"));
    await server.launch();
    return server;
  }

  /** Starts it (again), and resolves once it is ready. */
  async launch(): Promise<void> {
    await this.kill();
    // Fewer collections: on a test machine memory is cheaper than time.
    const env = { GOGC: "300" };
    this.#process = await startBoundProcess({ command: this.#binary, args: this.#args, logFile: this.#logFile, env });
    const { url, token, authority } = this.access;
    const dispatcher = new Agent({ connect: { ca: authority } });
    const headers = { authorization: `Bearer ${token}` };
    try {
      await untilReady("kube-apiserver", this.#process, async (signal) => {
        const { statusCode, body } = await request(`${url}/readyz`, { dispatcher, headers, signal });
        await body.dump();
        return statusCode === 200;
      });
    } finally {
      await dispatcher.destroy();
    }
  }

  /** SIGKILL: on SIGTERM it would wait for its watches for up to a minute. */
  async kill(): Promise<void> {
    await this.#process?.stop(0);
    this.#process = undefined;
  }

  /** Connections stay open and nothing answers, as of a machine that hangs. */
  pause(): void {
    this.#signal("SIGSTOP");
  }

  resume(): void {
    this.#signal("SIGCONT");
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#process === undefined) throw new Error("kube-apiserver does not run");
    process.kill(this.#process.pid, signal);
  }
}
