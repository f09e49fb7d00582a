import { randomBytes } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { Failure } from "#shared/errors/failure.ts";
import { issueCertificate, makeAuthority } from "../certificates.ts";
import type { ApiState } from "./api-state.ts";
import { createObject } from "./create-object.ts";
import { DataFile, loadState } from "./data-file.ts";
import { startGarbageCollection } from "./garbage.ts";
import { definitionsKey, Kinds, namespacesKey } from "./kinds.ts";
import { makeKubeconfig } from "./kubeconfig.ts";
import { parseObject } from "./request-body.ts";
import { makeServer } from "./server.ts";
import { Store } from "./store.ts";
import { updateObject } from "./update-object.ts";

export interface KubernetesApiOptions {
  /** 0 for any free one. */
  port: number;
  host: string;
  /** Where the objects outlive this process; made when it is not there. */
  dataFile: string;
  /** CustomResourceDefinitions that are served from the start, as their YAML says. */
  crds: object[];
  /** The bearer token of every client; a random one by default. */
  token?: string;
  /** PEM texts; `authority` goes into the kubeconfig. Made anew at every start by default. */
  tls?: { certificate: string; key: string; authority: string };
  /** Milliseconds since 1970. */
  now?: () => number;
  /** Told of every error that is the server's own, and of a state that cannot be written. */
  onError?: (error: unknown) => void;
  /** How many changes a watch can catch up with. */
  historySize?: number;
  bookmarkSeconds?: number;
}

export interface KubernetesApi {
  url: string;
  token: string;
  /** YAML text. */
  kubeconfig: string;
  /** Ends all watches and connections and saves the state. */
  stop(): Promise<void>;
}

/**
 * Starts a small Kubernetes API, for kubectl and for our own processes and nothing beyond: a first look, not a judge.
 * Throws a Failure when the data file cannot be read or the port is in use.
 */
export async function startKubernetesApi(options: KubernetesApiOptions): Promise<KubernetesApi> {
  const { host, now = Date.now, onError = reportError, token = randomBytes(24).toString("base64url") } = options;
  const store = new Store({ ...(await loadState(options.dataFile)), keep: options.historySize ?? 10_000 });
  const api: ApiState = { store, kinds: new Kinds(store), now };
  const file = new DataFile({ path: options.dataFile, store, onError });
  for (const name of ["default", "kube-system"]) ensure(api, namespacesKey, { metadata: { name } });
  for (const crd of options.crds) ensure(api, definitionsKey, crd);
  const stopCollection = startGarbageCollection(api);
  const tls = options.tls ?? (await makeTls(host));
  const server = makeServer({ api, token, tls, bookmarkSeconds: options.bookmarkSeconds ?? 60, onError });
  const stop = async (): Promise<void> => {
    stopCollection();
    await server.close();
    await file.close();
  };
  try {
    const url = await listen(server, host, options.port);
    return { url, token, kubeconfig: makeKubeconfig({ url, authority: tls.authority, token }), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function reportError(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}

/** Creates the object or brings it to what it should be, as `kubectl replace` would. */
function ensure(api: ApiState, storeKey: string, wanted: object): void {
  const kind = api.kinds.ofStoreKey(storeKey);
  const object = parseObject(wanted);
  const held = api.store.get(storeKey, undefined, object.metadata.name ?? "");
  const options = { dryRun: false, fieldValidation: "Strict", statusOnly: false } as const;
  if (kind === undefined) return;
  if (held === undefined) createObject(api, kind, undefined, object, options);
  else if (storeKey === definitionsKey) updateObject(api, kind, held, object, options);
}

async function makeTls(host: string): Promise<NonNullable<KubernetesApiOptions["tls"]>> {
  const authority = await makeAuthority();
  const altNames = [{ ip: host }, { dns: "localhost" }];
  const issued = await issueCertificate(authority, { commonName: "kubernetes", altNames });
  return { ...issued, authority: authority.certificate };
}

async function listen(server: FastifyInstance, host: string, port: number): Promise<string> {
  try {
    return await server.listen({ host, port });
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error) || error.code !== "EADDRINUSE") throw error;
    const message = `Port ${port} of ${host} is in use: stop what uses it, or choose another port for the local Kubernetes API.`;
    throw new Failure({ class: "Permanent", code: "PortInUse", message, cause: error });
  }
}
