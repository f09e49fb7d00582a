import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { issueCertificate, makeAuthority } from "#infra/local/certificates.ts";
import {
  type KubernetesApi,
  type KubernetesApiOptions,
  startKubernetesApi,
} from "#infra/local/kubernetes-api/start.ts";
import { proxyCrd } from "#shared/model/crd.ts";
import { ApiClient } from "./api-client.ts";

/** The small Kubernetes API alone, for tests of what only that one does. */
export class SmallApi extends ApiClient {
  readonly dir: string;
  readonly #options: KubernetesApiOptions;
  #api: KubernetesApi;

  private constructor(dir: string, options: KubernetesApiOptions, api: KubernetesApi) {
    super(api);
    // Another start is the same server: address, token and certificate stay.
    this.#options = { ...options, port: Number(new URL(api.url).port), token: api.token };
    [this.dir, this.#api] = [dir, api];
  }

  static async start(options: Partial<KubernetesApiOptions> = {}): Promise<SmallApi> {
    const dir = await mkdtemp(path.join(tmpdir(), "kubernetes-api-"));
    try {
      const authority = await makeAuthority();
      const subject = { commonName: "kubernetes", altNames: [{ ip: "127.0.0.1" }] };
      const whole = {
        port: 0,
        host: "127.0.0.1",
        dataFile: path.join(dir, "state.json"),
        crds: [proxyCrd()],
        tls: { ...(await issueCertificate(authority, subject)), authority: authority.certificate },
        ...options,
      };
      const api = await startKubernetesApi(whole);
      await writeFile(path.join(dir, "kubeconfig"), api.kubeconfig, { mode: 0o600 });
      return new SmallApi(dir, whole, api);
    } catch (error) {
      await rm(dir, { recursive: true });
      throw error;
    }
  }

  get kubeconfigFile(): string {
    return path.join(this.dir, "kubeconfig");
  }

  get dataFile(): string {
    return this.#options.dataFile;
  }

  get port(): number {
    return this.#options.port;
  }

  /** Stops the server, as Ctrl-C does, and starts it again with the same data. */
  async restart(): Promise<void> {
    await this.#api.stop();
    this.#api = await startKubernetesApi(this.#options);
  }

  async stop(): Promise<void> {
    await this.#api.stop();
    await this.close();
    await rm(this.dir, { recursive: true, force: true });
  }
}
