import { Failure } from "#shared/errors/failure.ts";
import type { CallTarget } from "./classify.ts";

const dnsName = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** `<namespace>/<name>`: neither can hold a slash. */
export function formatProviderID({ namespace, name }: { namespace: string; name: string }): string {
  return `${namespace}/${name}`;
}

/** Throws Permanent `MalformedID`. */
export function parseProviderID(target: CallTarget & { providerID: string }): { namespace: string; name: string } {
  const [namespace = "", name = "", ...more] = target.providerID.split("/");
  if (dnsName.test(namespace) && dnsName.test(name) && more.length === 0) return { namespace, name };
  throw new Failure({
    ...target,
    class: "Permanent",
    code: "MalformedID",
    message: `not an id of a kubernetes provider (<namespace>/<name>): ${target.providerID.slice(0, 100)}`,
  });
}
