import { z } from "zod";
import { type Cidr, parseCidr } from "./cidr.ts";

const port = z.int().min(1).max(65_535);

const cidr = z.string().superRefine((text, context) => {
  const parsed = parseCidr(text);
  if (typeof parsed === "string") context.addIssue({ code: "custom", message: `${text}: ${parsed}` });
});

const destination = z.string().superRefine((text, context) => {
  const parsed = parseDestination(text);
  if (typeof parsed === "string") context.addIssue({ code: "custom", message: `${text}: ${parsed}` });
});

/** Kubernetes' own notation of an amount, e.g. `100m`, `0.5`, `256Mi`. YAML gives plain numbers too. */
const quantity = z
  .union([z.string(), z.number()])
  .transform(String)
  .pipe(z.string().regex(/^\d+(\.\d+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/, "expected an amount like 100m or 256Mi"));

const amounts = z.record(z.string().min(1), quantity);

const toleration = z.strictObject({
  key: z.string().exactOptional(),
  operator: z.enum(["Exists", "Equal"]).exactOptional(),
  value: z.string().exactOptional(),
  effect: z.enum(["NoSchedule", "PreferNoSchedule", "NoExecute"]).exactOptional(),
  tolerationSeconds: z.int().min(0).exactOptional(),
});

/** The `kubernetes:` block of a provider. Every key has a default, so the block may be missing. */
export const kubernetesSettings = z.strictObject({
  /** An image with Squid 5.7 or newer at /usr/sbin/squid that runs as user 13, as Debian's and Ubuntu's do. */
  image: z.string().regex(/^\S+$/, "expected an image reference").default("ubuntu/squid:6.6-24.04_edge"),
  imagePullPolicy: z.enum(["Always", "IfNotPresent", "Never"]).optional(),
  /** Names of Secrets in the namespace of the Proxy. */
  imagePullSecrets: z.array(z.string().min(1)).default([]),
  /** Who may use the proxies: private ranges and loopback. Others get 403, also with the right password. */
  allowSources: z
    .array(cidr)
    .min(1)
    .default(["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "fc00::/7", "::1/128"]),
  /** Ports that CONNECT may open. */
  connectPorts: z.array(port).min(1).default([443]),
  /** `CIDR:port`: what is opened of the destinations that are denied otherwise (private, loopback, metadata...). */
  allowDestinations: z.array(destination).default([]),
  /** Proxies without credentials are allowed: whoever reaches one can use it. */
  insecureNoAuth: z.boolean().default(false),
  resources: z
    .strictObject({ requests: amounts.default({}), limits: amounts.default({}) })
    // One Squid is resident with about 24 MB; buffers of many connections need the rest.
    .default({ requests: { cpu: "10m", memory: "48Mi" }, limits: { memory: "256Mi" } }),
  nodeSelector: z.record(z.string(), z.string()).default({}),
  tolerations: z.array(toleration).default([]),
});
export type KubernetesSettings = z.infer<typeof kubernetesSettings>;

/** Splits `127.0.0.9/32:8443` or `[fd00::]/8:443`. A string is what is wrong with it, for a person. */
export function parseDestination(text: string): { cidr: Cidr; port: number } | string {
  const [, inBrackets, plain, prefix = "", digits = ""] =
    /^(?:\[([^\]]+)\]|([\d.]+))(\/\d+):(\d{1,5})$/.exec(text) ?? [];
  const address = inBrackets ?? plain;
  if (address === undefined) return "expected CIDR:port, like 10.1.2.0/24:8443 or [fd00::]/8:8443";
  const block = parseCidr(`${address}${prefix}`);
  if (typeof block === "string") return block;
  const number = Number(digits);
  return port.safeParse(number).success ? { cidr: block, port: number } : "expected a port from 1 to 65535";
}
