import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";
import { ClusterConnection } from "#shared/cluster/connection.ts";

export interface Context {
  /** Url of the API server. */
  server: string;
  name: string;
}

const named = z.object({ "current-context": z.string() });

/** Which cluster a kubeconfig means. Dials nothing. Throws Permanent `InvalidKubeconfig`. */
export function contextOf(kubeconfigFile: string): Context {
  const { server } = ClusterConnection.load({ kubeconfigFile, userAgent: "egress-proxies-npm-start" });
  return { server, name: named.parse(parse(readFileSync(kubeconfigFile, "utf8")))["current-context"] };
}
