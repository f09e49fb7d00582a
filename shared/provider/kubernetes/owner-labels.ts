import type { V1ObjectMeta } from "@kubernetes/client-node";
import { marks } from "#shared/model/names.ts";
import type { Owner } from "../contract.ts";

/** The marks of an instance as labels, on everything that is made for it. */
export function ownerLabels(owner: Owner): Record<string, string> {
  return {
    [marks.managed]: "true",
    [marks.uid]: owner.uid,
    [marks.incarnation]: String(owner.incarnation),
    [marks.installation]: owner.installation,
  };
}

/** What to list by: everything of this installation, also with an empty uid. */
export function ownSelector(installation: string): string {
  return `${marks.managed}=true,${marks.installation}=${installation}`;
}

/** Reads the marks back. What is missing or malformed becomes empty, which is nobody's. */
export function readOwner(metadata: V1ObjectMeta | undefined): Owner {
  const labels = metadata?.labels ?? {};
  const incarnation = /^\d{1,9}$/.test(labels[marks.incarnation] ?? "") ? Number(labels[marks.incarnation]) : 0;
  return { uid: labels[marks.uid] ?? "", incarnation, installation: labels[marks.installation] ?? "" };
}

/** Whether the object is exactly this instance's. An empty uid owns nothing. */
export function isOwnedBy(metadata: V1ObjectMeta | undefined, owner: Owner): boolean {
  const labels = metadata?.labels ?? {};
  return owner.uid !== "" && Object.entries(ownerLabels(owner)).every(([name, value]) => labels[name] === value);
}
