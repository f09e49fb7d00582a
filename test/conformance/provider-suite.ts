import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, onTestFinished } from "vitest";
import type { CreateRequest } from "#shared/provider/contract.ts";
import type { ConformanceBackend, Told } from "./backend.ts";
import { callRules, secretRules } from "./call-rules.ts";
import { createRules } from "./create-rules.ts";
import { cutOffRules } from "./cut-off-rules.ts";
import { deleteRules } from "./delete-rules.ts";
import { getRules } from "./get-rules.ts";
import { listRules } from "./list-rules.ts";
import { type Scene, sentinels } from "./scene.ts";

/** Every rule of the provider contract that can be seen from outside, for any provider and backend. */
export function providerSuite(label: string, start: () => Promise<ConformanceBackend>): void {
  describe(label, () => {
    let backend: ConformanceBackend;
    beforeAll(async () => {
      backend = await start();
    });
    afterAll(() => backend.stop());

    async function scene(): Promise<Scene> {
      const installation = randomBytes(5).toString("hex");
      const told: Told = { calls: [], logs: [] };
      const provider = backend.provider(installation, told);
      const owner = await backend.owner();
      const placement = {};
      const request: CreateRequest = {
        ...owner,
        installation,
        incarnation: 1,
        placement,
        zone: provider.place({ placement, port: 3128, hasAuth: true }),
        port: 3128,
        name: `proxy-${randomBytes(8).toString("hex")}`,
        cloudInit: Buffer.from(sentinels.cloudInit),
        auth: { username: "crawler", password: sentinels.password },
      };
      onTestFinished(() => backend.hook(undefined));
      return { backend, provider, request, told };
    }

    createRules(scene);
    cutOffRules(scene);
    getRules(scene);
    deleteRules(scene);
    listRules(scene);
    callRules(scene);
    secretRules(scene);
  });
}
