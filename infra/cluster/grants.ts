import { readFile } from "node:fs/promises";
import path from "node:path";
import { parseAllDocuments } from "yaml";
import { z } from "zod";

export const rbacFile = path.join(import.meta.dirname, "rbac.yaml");

/** One verb on one resource, as rbac.yaml grants it. */
export interface Grant {
  /** ServiceAccount that has it. */
  account: string;
  /** Undefined: in all of them, or no namespaced resource. */
  namespace: string | undefined;
  group: string;
  /** With a subresource as RBAC writes it: `proxies/status`. */
  resource: string;
  /** Undefined: any. */
  name: string | undefined;
  verb: string;
  /** Kind and name of the role, and the place of the rule in it. */
  role: { kind: "Role" | "ClusterRole"; name: string; rule: number };
}

const metadata = z.object({ name: z.string(), namespace: z.string().optional() });

// Strict, and one of each: what is not understood here could grant more than is seen.
const rule = z.strictObject({
  apiGroups: z.tuple([z.string()]),
  resources: z.tuple([z.string()]),
  resourceNames: z.tuple([z.string()]).optional(),
  verbs: z.array(z.string()).min(1),
});

const role = z.object({ kind: z.enum(["Role", "ClusterRole"]), metadata, rules: z.array(rule) });
type Role = z.infer<typeof role>;

const binding = z.object({
  kind: z.enum(["RoleBinding", "ClusterRoleBinding"]),
  metadata,
  roleRef: z.object({ kind: z.enum(["Role", "ClusterRole"]), name: z.string() }),
  subjects: z.array(z.object({ kind: z.literal("ServiceAccount"), name: z.string(), namespace: z.string() })),
});
type Binding = z.infer<typeof binding>;

const other = z.object({ kind: z.enum(["Namespace", "ServiceAccount"]) });

/** Everything that rbac.yaml grants, in its order. Throws when a binding names a role that is not in it. */
export async function readGrants(): Promise<Grant[]> {
  const documents = parseAllDocuments(await readFile(rbacFile, "utf8"));
  const objects = documents.map((document) => z.union([role, binding, other]).parse(document.toJS()));
  const roles = objects.flatMap((each) => ("rules" in each ? [each] : []));
  const bindings = objects.flatMap((each) => ("roleRef" in each ? [each] : []));
  return bindings.flatMap((each) => grantsOf(each, roles));
}

function grantsOf({ metadata: { name, namespace }, roleRef, subjects }: Binding, roles: readonly Role[]): Grant[] {
  const found = roles.find(
    ({ kind, metadata }) =>
      kind === roleRef.kind &&
      metadata.name === roleRef.name &&
      (kind === "ClusterRole" || metadata.namespace === namespace),
  );
  if (found === undefined) throw new Error(`rbac.yaml: ${namespace}/${name} binds ${roleRef.name}, which is not there`);
  return subjects.flatMap(({ name: account }) =>
    found.rules.flatMap((rule, index) => {
      const [[group], [resource], [name]] = [rule.apiGroups, rule.resources, rule.resourceNames ?? [undefined]];
      const role = { ...roleRef, rule: index };
      return rule.verbs.map((verb) => ({ account, namespace, group, resource, name, verb, role }));
    }),
  );
}
