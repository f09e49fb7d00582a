import type { V1Container, V1ObjectMeta, V1Pod, V1PodSecurityContext, V1Secret } from "@kubernetes/client-node";
import { annotationPrefix, apiVersion } from "#shared/model/names.ts";
import type { CreateRequest } from "../contract.ts";
import { htpasswd } from "./htpasswd.ts";
import { ownerLabels } from "./owner-labels.ts";
import type { KubernetesSettings } from "./settings.ts";
import { squidConfig } from "./squid-config.ts";

/** Where the Secret is mounted: everything that Squid reads of us lies here, and nothing is named relatively. */
const configDir = "/etc/egress-proxy";

/** Name of the only container. */
export const containerName = "squid";

/** User and group `proxy` of Debian's and Ubuntu's packages. */
const squidUser = 13;

/** The only writable places. Squid wants them there, with the cache off little is written. */
const scratch = { run: "/run", spool: "/var/spool/squid", log: "/var/log/squid" };

/**
 * The Secret with squid.conf and, with credentials, htpasswd: an environment variable would show them to everyone who
 * may read Pods. Pure: a repeated create makes the same. Throws Permanent `InvalidCredentials`.
 */
export function secretManifest(request: CreateRequest, settings: KubernetesSettings): V1Secret {
  const login = request.auth === undefined ? {} : { htpasswd: htpasswd(request.name, request.auth) };
  const htpasswdFile = request.auth === undefined ? undefined : `${configDir}/htpasswd`;
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: metadata(request),
    type: "Opaque",
    // Changed credentials are a new incarnation with a Secret of its own.
    immutable: true,
    data: encode({ "squid.conf": squidConfig({ port: request.port, htpasswdFile, settings }), ...login }),
  };
}

/** The Pod that runs one Squid. Pure. */
export function podManifest(request: CreateRequest, settings: KubernetesSettings): V1Pod {
  const { nodeSelector, tolerations, imagePullSecrets } = settings;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: metadata(request),
    spec: {
      // Nothing of the cluster is within reach of what runs in the Pod.
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: podSecurity(request.port),
      // What died is replaced by a new incarnation, so that everybody sees it.
      restartPolicy: "Never",
      // More than Squid's shutdown_lifetime.
      terminationGracePeriodSeconds: 10,
      containers: [container(request, settings)],
      volumes: [
        { name: "config", secret: { secretName: request.name, defaultMode: 0o440 } },
        ...Object.keys(scratch).map((name) => ({ name, emptyDir: { sizeLimit: "16Mi" } })),
      ],
      ...(Object.keys(nodeSelector).length > 0 ? { nodeSelector } : {}),
      ...(tolerations.length > 0 ? { tolerations } : {}),
      ...(imagePullSecrets.length > 0 ? { imagePullSecrets: imagePullSecrets.map((name) => ({ name })) } : {}),
    },
  };
}

/** Ports below 1024 need a setting instead of a capability; Kubernetes counts it among the safe ones. */
function podSecurity(port: number): V1PodSecurityContext {
  const lowPorts = [{ name: "net.ipv4.ip_unprivileged_port_start", value: "0" }];
  return {
    runAsNonRoot: true,
    runAsUser: squidUser,
    runAsGroup: squidUser,
    fsGroup: squidUser,
    seccompProfile: { type: "RuntimeDefault" },
    ...(port < 1024 ? { sysctls: lowPorts } : {}),
  };
}

function container(request: CreateRequest, settings: KubernetesSettings): V1Container {
  return {
    name: containerName,
    image: settings.image,
    ...(settings.imagePullPolicy === undefined ? {} : { imagePullPolicy: settings.imagePullPolicy }),
    command: ["/usr/sbin/squid", "-N", "-d", "1", "-f", `${configDir}/squid.conf`],
    ports: [{ name: "proxy", containerPort: request.port, protocol: "TCP" }],
    readinessProbe: { tcpSocket: { port: request.port }, periodSeconds: 5 },
    resources: settings.resources,
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    },
    volumeMounts: [
      { name: "config", mountPath: configDir, readOnly: true },
      ...Object.entries(scratch).map(([name, mountPath]) => ({ name, mountPath })),
    ],
  };
}

/**
 * The Secret is owned by the Proxy, as the Pod is, and not by the Pod: it must exist before the Pod does. The owner is
 * the last safety net where somebody removed the finalizer by hand.
 */
function metadata(request: CreateRequest): V1ObjectMeta {
  return {
    name: request.name,
    namespace: request.namespace,
    labels: {
      ...ownerLabels(request),
      "app.kubernetes.io/name": "squid",
      "app.kubernetes.io/component": "proxy",
      "app.kubernetes.io/managed-by": "egress-proxies",
    },
    // An annotation: names of objects may be longer than a label's value.
    annotations: { [`${annotationPrefix}proxy`]: request.proxyName },
    ownerReferences: [
      {
        apiVersion,
        kind: "Proxy",
        name: request.proxyName,
        uid: request.uid,
        controller: true,
        blockOwnerDeletion: false,
      },
    ],
  };
}

function encode(files: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(files).map(([name, text]) => [name, Buffer.from(text).toString("base64")]));
}
