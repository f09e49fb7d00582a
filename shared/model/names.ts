/** Names that Kubernetes, the backends and people see. Decided once; several parts depend on each. */

export const group = "crawl.example.com";
export const version = "v1alpha1";
export const apiVersion = `${group}/${version}`;

/** Prefix of our annotations. */
export const annotationPrefix = `${group}/`;

/** Kept on a Proxy while something of it may exist on a backend. */
export const finalizer = `${group}/instance`;

/** What every resource that we make on a backend carries. Compared exactly, never by prefix. */
export const marks = {
  managed: "egress-proxies-managed",
  uid: "egress-proxies-uid",
  incarnation: "egress-proxies-incarnation",
  installation: "egress-proxies-installation",
} as const;

/** The ConfigMap (installation id) and the Secret (key of the spec hash) of this installation. */
export const installationObjectName = "egress-proxies-installation";

/** A DNS-1123 label: the shape of provider names, Proxy zones and the like. */
export const dnsLabelPattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
