import { randomBytes } from "node:crypto";
import { Failure } from "#shared/errors/failure.ts";
import { issueCertificate, type KeyedCertificate, makeAuthority } from "../certificates.ts";
import { makeKubeconfig } from "../kubeconfig.ts";
import { definitionsKey, namespacesKey } from "../kubernetes-objects/kind.ts";
import { keepDataFile, loadState } from "./data-file.ts";
import { startGarbageCollection } from "./garbage.ts";
import { coreKinds } from "./kinds.ts";
import { parseObject } from "./request.ts";
import { makeServer } from "./server.ts";
import { Store } from "./store.ts";
import { createObject, updateObject } from "./write-object.ts";

export interface KubernetesApiOptions {
  /** 0 for any free one. */
  port: number;
  host: string;
  /** Where the objects outlive the process; made when it is not there. */
  dataFile: string;
  /** The CustomResourceDefinitions that are served from the start. */
  crds: object[];
  /** The bearer token of every client; a random one by default. */
  token?: string;
  /** Of the server, and the authority's certificate (PEM) that clients are to trust; made at every start by default. */
  tls?: KeyedCertificate & { authority: string };
  /** Milliseconds since 1970. */
  now?: () => number;
  /** Told of the server's own errors, and of a state that cannot be written. */
  onError?: (error: unknown) => void;
  /** How many changes a watch can catch up with; 10,000 by default. */
  historySize?: number;
  /** 60 by default, as in the real server. */
  bookmarkSeconds?: number;
}

export interface KubernetesApi {
  url: string;
  token: string;
  /** The certificate (PEM) that clients are to trust. */
  authority: string;
  /** YAML text, with the token and the authority's certificate. */
  kubeconfig: string;
  /** Ends all watches and connections and saves the state. Rejects when that cannot be saved. */
  stop(): Promise<void>;
}

/**
 * Starts a small Kubernetes API, for kubectl and our own processes and nothing beyond: good for a first look, while the
 * real one decides. Throws a Failure when the data file cannot be read or the port is in use.
 */
export async function startKubernetesApi(options: KubernetesApiOptions): Promise<KubernetesApi> {
  const {
    host,
    port,
    dataFile,
    onError = report,
    now = Date.now,
    historySize = 10_000,
    bookmarkSeconds = 60,
  } = options;
  const { token = randomBytes(24).toString("base64url"), tls = await makeTls(host) } = options;
  const store = new Store({ ...(await loadState(dataFile)), historySize, now });
  for (const name of ["default", "kube-system"]) ensure(store, namespacesKey, { metadata: { name } });
  for (const crd of options.crds) ensure(store, definitionsKey, crd);
  const save = await keepDataFile(dataFile, store, onError);
  const server = makeServer({ store, token, tls, bookmarkSeconds, onError });
  const url = await server.listen({ host, port }).catch((cause: unknown) => {
    if (!(cause instanceof Error) || !("code" in cause) || cause.code !== "EADDRINUSE") throw cause;
    const message = `Port ${port} of ${host} is in use: stop what uses it, or choose another for the Kubernetes API.`;
    throw new Failure({ class: "Permanent", code: "PortInUse", message, cause });
  });
  const stopCollection = startGarbageCollection(store);
  const stop = async (): Promise<void> => {
    stopCollection();
    await server.close();
    await save();
  };
  const { authority } = tls;
  return { url, token, authority, kubeconfig: makeKubeconfig({ url, token, authority }), stop };
}

async function makeTls(host: string): Promise<NonNullable<KubernetesApiOptions["tls"]>> {
  const authority = await makeAuthority();
  const subject = { commonName: "kubernetes", altNames: [{ ip: host }, { dns: "localhost" }] };
  return { ...(await issueCertificate(authority, subject)), authority: authority.certificate };
}

function report(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}

/** Creates an object, or brings it to what it should be. */
function ensure(store: Store, key: string, wanted: object): void {
  const object = parseObject(wanted);
  const held = store.get(key, "", object.metadata.name);
  const options = { dryRun: false, fieldValidation: "Strict", statusOnly: false };
  for (const kind of coreKinds.filter((one) => one.key === key)) {
    if (held === undefined) createObject(store, kind, "", object, options);
    else if (key === definitionsKey) updateObject(store, kind, held, object, options);
  }
}
