import { definitionsKey } from "../kubernetes-objects/kind.ts";
import { type KubeObject, objectAt } from "../kubernetes-objects/kube-object.ts";
import { customKinds } from "./kinds.ts";

/** What the real server fills in for a built-in kind. Throws a 422 for a CustomResourceDefinition it cannot serve. */
export function withCoreDefaults(key: string, object: KubeObject, now: string): KubeObject {
  const { metadata } = object;
  switch (key) {
    case "namespaces": {
      const labels = { ...metadata.labels, "kubernetes.io/metadata.name": metadata.name };
      return { status: { phase: "Active" }, ...object, metadata: { ...metadata, labels } };
    }
    case "pods": {
      const spec = { restartPolicy: "Always", terminationGracePeriodSeconds: 30, ...objectAt(object, "spec") };
      return { status: { phase: "Pending" }, ...object, spec };
    }
    case "secrets": {
      const { stringData: _, ...secret } = object;
      const encoded = Object.entries(objectAt(object, "stringData")).map(([name, value]) => [name, base64(value)]);
      return { type: "Opaque", ...secret, data: { ...objectAt(object, "data"), ...Object.fromEntries(encoded) } };
    }
    case definitionsKey: {
      const [served] = customKinds(structuredClone(object));
      const names = { singular: served?.singular, listKind: `${served?.kind ?? ""}List` };
      const spec = objectAt(object, "spec");
      const established = {
        type: "Established",
        status: "True",
        reason: "InitialNamesAccepted",
        lastTransitionTime: now,
      };
      const status = { acceptedNames: spec["names"], storedVersions: [served?.version], conditions: [established] };
      return { status, ...object, spec: { ...spec, names: { ...names, ...objectAt(spec, "names") } } };
    }
    default:
      return object;
  }
}

function base64(value: unknown): string {
  return Buffer.from(String(value)).toString("base64");
}
