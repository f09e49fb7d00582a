import type { TestProject } from "vitest/node";
import type { ApiAccess } from "./api-server.ts";
import { startWithDefinitions } from "./start-with-definitions.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The one that all test files of a run share; null where they are to use the small API. */
    controlPlane: SharedControlPlane | null;
  }
}

export interface SharedControlPlane extends ApiAccess {
  etcdUrl: string;
}

/** Starts the one control plane of a run of project `real`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const plane = await startWithDefinitions();
  const { url, token, authority, etcdUrl } = plane;
  project.provide("controlPlane", { url, token, authority, etcdUrl });
  return () => plane.stop();
}
