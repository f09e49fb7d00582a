import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import type { Grant } from "#infra/cluster/grants.ts";

/** A request that an API server was asked for, as its authorizer saw it. */
export interface AuditedRequest {
  user: string;
  verb: string;
  group: string;
  /** With its subresource: `proxies/status`. */
  resource: string;
  /** Empty: of the whole cluster. */
  namespace: string;
  /** Empty where the request has none: a list, a create. */
  name: string;
  allowed: boolean;
}

const line = z.object({
  verb: z.string(),
  user: z.object({ username: z.string() }),
  objectRef: z
    .object({
      apiGroup: z.string().default(""),
      resource: z.string(),
      subresource: z.string().optional(),
      namespace: z.string().default(""),
      name: z.string().default(""),
    })
    .optional(),
  annotations: z.record(z.string(), z.string()).default({}),
});

/** What an API server writes of every request that is answered, in a folder of the test's own. */
export class AuditLog {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Writes the policy. Answers with what is to be added to the server's command line. */
  async serverArgs(): Promise<string[]> {
    const policy = path.join(this.#dir, "audit-policy.json");
    const rules = [{ level: "Metadata", omitStages: ["RequestReceived"] }];
    await writeFile(policy, JSON.stringify({ apiVersion: "audit.k8s.io/v1", kind: "Policy", rules }));
    return [`--audit-policy-file=${policy}`, `--audit-log-path=${this.#file}`];
  }

  /** Those of one user, for objects. */
  async requestsOf(user: string): Promise<AuditedRequest[]> {
    const lines = (await readFile(this.#file, "utf8")).split("\n").slice(0, -1); // the last one may be half written
    return lines.flatMap((text) => {
      const { verb, user: who, objectRef, annotations } = line.parse(JSON.parse(text));
      if (who.username !== user || objectRef === undefined) return [];
      const { apiGroup: group, resource: plural, subresource, namespace, name } = objectRef;
      const resource = subresource === undefined ? plural : `${plural}/${subresource}`;
      const allowed = annotations["authorization.k8s.io/decision"] === "allow";
      return [{ user, verb, group, resource, namespace, name, allowed }];
    });
  }

  get #file(): string {
    return path.join(this.#dir, "audit.log");
  }
}

/** Whether the grant is what allows the request. */
export function allows(grant: Grant, request: AuditedRequest): boolean {
  return (
    grant.verb === request.verb &&
    grant.group === request.group &&
    grant.resource === request.resource &&
    (grant.namespace === undefined || grant.namespace === request.namespace) &&
    // The authorizer sees no name in a create, whatever the log says of the object that was made.
    (grant.name === undefined || grant.name === request.name)
  );
}
