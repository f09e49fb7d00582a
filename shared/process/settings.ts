import { z } from "zod";
import { parseRedisUrl } from "#shared/redis/url.ts";
import { parseLogLevels } from "#shared/telemetry/logger.ts";
import { integer } from "./environment.ts";

function mustBeLevels(text: string, context: z.RefinementCtx): void {
  try {
    parseLogLevels(text);
  } catch (error) {
    context.addIssue({ code: "custom", message: error instanceof Error ? error.message : "expected a level" });
  }
}

function mustBeRedisUrl(url: string, context: z.RefinementCtx): void {
  try {
    parseRedisUrl(url);
  } catch (error) {
    context.addIssue({ code: "custom", message: error instanceof Error ? error.message : "expected a Redis url" });
  }
}

/** Settings that every process has. Each function adds its own in its config.ts. */
export const processSettings = z.object({
  LOG_LEVEL: z
    .string()
    .superRefine(mustBeLevels)
    .default("info")
    .describe("Level of the log; `info,provider=debug` sets components."),
  ADMIN_HOST: z.string().default("0.0.0.0").describe("Address of /healthz, /readyz and /metrics."),
  ADMIN_PORT: integer(0, 65_535).default(9090).describe("Port of /healthz, /readyz and /metrics; 0 picks a free one."),
  REDIS_URL: z
    .string({ error: "expected the url of Redis, like redis://:PASSWORD@HOST:6379" })
    .superRefine(mustBeRedisUrl)
    .describe(
      "Redis: `redis://`, `rediss://`, with `+sentinel` or `+cluster`. A private CA comes by NODE_EXTRA_CA_CERTS.",
    ),
});

/** Settings of the processes that speak to the Kubernetes API. */
export const clusterSettings = z.object({
  KUBECONFIG: z.string().optional().describe("Path of a kubeconfig; inside a cluster the Pod's own account is used."),
  POD_NAMESPACE: z
    .string({ error: "expected the namespace of this installation" })
    .describe("Namespace of this installation; the chart sets it."),
  RELEASE_NAME: z
    .string()
    .default("egress-proxies")
    .describe("Name of this installation in its namespace; the chart sets it."),
  INSTALLATION_ID: z
    .string()
    .regex(/^[a-z2-7]{10}$/, "expected 10 characters of a-z and 2-7")
    .optional()
    .describe("Overrides the id that marks our instances; derived from the cluster, the namespace and the release."),
  WATCH_NAMESPACES: z
    .string()
    .optional()
    .describe("Namespaces whose Proxies are served, separated by commas; `*` for all. POD_NAMESPACE when absent."),
  PROVIDERS_FILE: z
    .string({ error: "expected the path of the file that lists the providers" })
    .describe("The file that lists the providers."),
});
export type ClusterSettings = z.infer<typeof clusterSettings>;

/** The namespaces to serve, or `*`. */
export function watchedNamespaces(settings: ClusterSettings): string[] | "*" {
  const names = (settings.WATCH_NAMESPACES ?? settings.POD_NAMESPACE).split(",").map((name) => name.trim());
  return names.includes("*") ? "*" : names.filter((name) => name !== "");
}
