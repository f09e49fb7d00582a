import { createInterface } from "node:readline/promises";
import { stopSignal } from "#shared/process/stop.ts";
import { type ApiProxy, startApiProxy } from "#test/fakes/api-proxy/api-proxy.ts";
import {
  blackHole,
  conflict,
  dropRequest,
  expired,
  garbage,
  loseAnswer,
  refuse,
  tooManyRequests,
} from "#test/fakes/api-proxy/faults.ts";
import type { Fault, Rule } from "#test/fakes/api-proxy/rules.ts";
import { expiredAfter, loseEvents, silentAfter } from "#test/fakes/api-proxy/watch-faults.ts";
import type { ControlPlane } from "./control-plane.ts";
import { startWithDefinitions } from "./start-with-definitions.ts";

/** `npm run test:cluster -- --by-hand`: a real API server to play with, and a proxy before it that does what it is told. */

const faults: Readonly<Record<string, Fault>> = {
  drop: dropRequest,
  "lose-answer": loseAnswer,
  "black-hole": blackHole,
  garbage,
  conflict,
  expired,
  429: tooManyRequests(5),
  500: refuse(500, "InternalError"),
  "lose-events": loseEvents(5),
  silent: silentAfter(0),
  "expired-in-stream": expiredAfter(0),
};

const verbs = ["get", "list", "watch", "create", "update", "patch", "delete"] as const;

const help = `Commands, one per line:
  kill | restart | pause | resume | compact       the API server; etcd forgets all but the newest state
  refuse | listen | hang-up | token               the proxy: refuses connections, ends them, wants a new token
  FAULT [VERB [RESOURCE [TIMES]]]                 ${Object.keys(faults).join(", ")}
                                                  e.g. lose-answer patch proxies/status 3; * stands for all
  clear                                           takes every fault back
  log                                             the last 20 requests through the proxy
`;

async function obey(line: string, plane: ControlPlane, proxy: ApiProxy, rules: Set<Rule>): Promise<string> {
  const [command = "", verb = "*", target = "*", times = "1"] = line.trim().split(/\s+/);
  const plain: Record<string, () => unknown> = {
    kill: () => plane.killApiServer(),
    restart: () => plane.restartApiServer(),
    pause: () => plane.pauseApiServer(),
    resume: () => plane.resumeApiServer(),
    compact: () => plane.compact(),
    refuse: () => proxy.refuseConnections(),
    listen: () => proxy.listen(),
    "hang-up": () => proxy.hangUp(),
    token: () => proxy.replaceToken()(),
    clear: () => {
      for (const rule of rules) rule.remove();
      rules.clear();
    },
  };
  if (Object.hasOwn(plain, command)) {
    await plain[command]?.();
    return "done";
  }
  if (command === "log") return proxy.log().slice(-20).join("\n");
  const fault = Object.hasOwn(faults, command) ? faults[command] : undefined;
  const known = verbs.find((each) => each === verb);
  if (fault === undefined || (verb !== "*" && known === undefined)) return help;
  const [resource = "*", subresource] = target.split("/");
  const matcher = {
    ...(known === undefined ? {} : { verb: known }),
    ...(resource === "*" ? {} : { resource, subresource: subresource ?? "" }),
  };
  rules.add(proxy.rules.add(matcher, fault, { times: Number(times) || 1 }));
  return "done";
}

const plane = await startWithDefinitions();
const proxy = await startApiProxy({ backend: plane.adminKubeconfig });
process.stdout.write(`A real Kubernetes API with our definitions. Ctrl-C ends it.
  directly         KUBECONFIG=${plane.adminKubeconfig}
  by the proxy     KUBECONFIG=${proxy.kubeconfigFile}
${help}`);
const lines = createInterface({ input: process.stdin });
const rules = new Set<Rule>();
lines.on("line", (line) => {
  obey(line, plane, proxy, rules).then(
    (answer) => process.stdout.write(`${answer}\n`),
    (error: unknown) => process.stdout.write(`${error instanceof Error ? error.message : String(error)}\n`),
  );
});
await stopSignal();
lines.close();
await proxy.stop();
await plane.stop();
process.exit(0);
