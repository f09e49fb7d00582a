import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { type Grant, readGrants } from "#infra/cluster/grants.ts";
import { apiVersion } from "#shared/model/names.ts";
import { proxy } from "#shared/model/proxy.ts";
import { type AuditedRequest, allows } from "./rbac/audit-log.ts";
import { type Account, productNamespace, proxiesNamespace, RbacInstallation } from "./rbac/installation.ts";

const patient = { timeout: 40_000, interval: 100 };
const proxies = `/apis/${apiVersion}/namespaces/${proxiesNamespace}/proxies`;
const core = `/api/v1/namespaces/${proxiesNamespace}`;
const record = `/api/v1/namespaces/${productNamespace}/configmaps/egress-proxies-installation`;
const rbac = "/apis/rbac.authorization.k8s.io/v1";
const mergePatch = "application/merge-patch+json";

const grants = await readGrants();
const accountOf = (grant: Grant) =>
  z.enum(["watcher", "functions"]).parse(grant.account.replace("egress-proxies-", ""));
const nameOf = ({ account, verb, resource, namespace, name }: Grant): string =>
  `${account} may ${verb} ${resource}${name === undefined ? "" : ` ${name}`} in ${namespace ?? "the cluster"}`;

let installation: RbacInstallation;
let asked: Record<"watcher" | "functions", AuditedRequest[]>;

async function create(target: string, body: object): Promise<void> {
  expect((await installation.admin.call("POST", target, { body })).status).toBe(201);
}

async function readProxy(name: string) {
  const { status, body } = await installation.admin.call("GET", `${proxies}/${name}`);
  return status === 404 ? undefined : proxy.parse(body);
}

async function namesOf(plural: string): Promise<string[]> {
  const { body } = await installation.admin.call("GET", `${core}/${plural}`);
  const list = z.looseObject({ items: z.array(z.object({ metadata: z.object({ name: z.string() }) })) }).parse(body);
  return list.items.map(({ metadata }) => metadata.name);
}

/** How often the event that was told most often was told. */
async function mostRepeats(): Promise<number> {
  const { body } = await installation.admin.call("GET", `${core}/events`);
  const events = z.looseObject({ items: z.array(z.object({ count: z.number() })) }).parse(body).items;
  return Math.max(...events.map(({ count }) => count));
}

/** Those that are refused, too. */
async function requestsOf(account: Account): Promise<AuditedRequest[]> {
  return await installation.audit.requestsOf(RbacInstallation.userOf(account));
}

beforeAll(async () => {
  installation = await RbacInstallation.make();
  // A cluster's controllers would add it; without it there is no Pod.
  await create(`${core}/serviceaccounts`, { metadata: { name: "default" } });
});

afterAll(() => installation?.stop());

test("with these rights the processes create, serve, lease and delete a Proxy", async () => {
  const stringData = { username: "crawler", password: "of-a-test" };
  await create(`${core}/secrets`, { metadata: { name: "login" }, stringData });
  for (const role of ["watcher", "functions", "lease-api"] as const) await installation.start(role);
  const spec = { provider: "lab", port: 3128, auth: { secretRef: { name: "login" } } };
  await create(proxies, { apiVersion, kind: "Proxy", metadata: { name: "p1" }, spec });
  // Its Pod is refused again and again: an event that is repeated.
  await create(proxies, { apiVersion, kind: "Proxy", metadata: { name: "p2" }, spec: { ...spec, provider: "bad" } });
  await expect.poll(async () => (await readProxy("p1"))?.status.phase, patient).toBe("Ready");
  const pod = (await readProxy("p1"))?.status.instance?.name;
  expect(await namesOf("pods")).toEqual([pod]);
  expect(await namesOf("secrets")).toContain(pod);
  const leased = await fetch(`http://127.0.0.1:${installation.leasePort}/v1/leases`, { method: "POST" });
  expect(leased.status).toBe(201);
  await installation.admin.call("DELETE", `${proxies}/p1`);
  await expect.poll(() => readProxy("p1"), patient).toBeUndefined();
  expect([...(await namesOf("pods")), ...(await namesOf("secrets"))]).not.toContain(pod);
  await expect.poll(mostRepeats, patient).toBeGreaterThan(1);
});

test("with these rights the installation's id is added to a ConfigMap that lacks it", async () => {
  const before = (await installation.admin.call("GET", record)).body;
  await installation.admin.call("PATCH", record, { body: { data: null }, type: mergePatch });
  await installation.start("functions");
  await expect
    .poll(async () => (await installation.admin.call("GET", record)).body["data"], patient)
    .toEqual(before["data"]);
});

test("with these rights no request is refused, and each right is used", async () => {
  await vi.waitFor(
    async () => {
      asked = { watcher: await requestsOf("watcher"), functions: await requestsOf("functions") };
      const unused = grants.filter((grant) => !asked[accountOf(grant)].some((request) => allows(grant, request)));
      expect(unused.map(nameOf)).toEqual([]);
    },
    { timeout: 40_000, interval: 500 },
  );
  expect([...asked.watcher, ...asked.functions].filter(({ allowed }) => !allowed)).toEqual([]);
  expect(await requestsOf("lease-api")).toEqual([]);
});

describe("without the right that", () => {
  /** Whether the API server would let the account do that now. */
  async function isAllowed({ user, verb, group, resource: full, namespace, name }: AuditedRequest): Promise<boolean> {
    const [resource, subresource = ""] = full.split("/");
    const groups = ["system:serviceaccounts", `system:serviceaccounts:${productNamespace}`, "system:authenticated"];
    // What RBAC compares in a create: no name.
    const resourceAttributes = { verb, group, resource, subresource, namespace, name: verb === "create" ? "" : name };
    const { body } = await installation.admin.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {
      body: { spec: { user, groups, resourceAttributes } },
    });
    return z.looseObject({ status: z.looseObject({ allowed: z.boolean() }) }).parse(body).status.allowed;
  }

  const ruleSet = z.looseObject({ rules: z.array(z.looseObject({ verbs: z.array(z.string()) })) });

  test.each(grants.map((grant) => [nameOf(grant), grant] as const))("%s something is refused", async (_, grant) => {
    const { kind, name, rule } = grant.role;
    const where = kind === "Role" ? `namespaces/${grant.namespace}/roles` : "clusterroles";
    const target = `${rbac}/${where}/${name}`;
    const { rules } = ruleSet.parse((await installation.admin.call("GET", target)).body);
    const less = rules.map((each, index) =>
      index === rule ? { ...each, verbs: each.verbs.filter((verb) => verb !== grant.verb) } : each,
    );
    const put = async (changed: object[]): Promise<void> => {
      const body = { rules: changed };
      expect((await installation.admin.call("PATCH", target, { body, type: mergePatch })).status).toBe(200);
    };
    const [request] = asked[accountOf(grant)].filter((each) => allows(grant, each));
    if (request === undefined) throw new Error("nothing has used it");
    await put(less.filter(({ verbs }) => verbs.length > 0));
    try {
      await expect.poll(() => isAllowed(request), patient).toBe(false);
    } finally {
      await put(rules);
    }
    await expect.poll(() => isAllowed(request), patient).toBe(true);
  });
});

describe("nothing else is granted", () => {
  const reviewed = z.looseObject({
    status: z.looseObject({
      incomplete: z.boolean(),
      resourceRules: z.array(
        z.object({
          verbs: z.array(z.string()),
          apiGroups: z.array(z.string()),
          resources: z.array(z.string()),
          resourceNames: z.array(z.string()).default([""]),
        }),
      ),
    }),
  });

  /** One line each: verb group/resource name. */
  async function rightsOf(account: Account, namespace: string): Promise<string[]> {
    const client = await installation.clientOf(account);
    try {
      const body = { spec: { namespace } };
      const answer = await client.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", { body });
      const { status } = reviewed.parse(answer.body);
      expect(status.incomplete).toBe(false);
      return status.resourceRules.flatMap(({ verbs, apiGroups, resources, resourceNames }) =>
        verbs.flatMap((verb) =>
          apiGroups.flatMap((group) =>
            resources.flatMap((resource) => resourceNames.map((name) => `${verb} ${group}/${resource} ${name}`)),
          ),
        ),
      );
    } finally {
      await client.close();
    }
  }

  const places = [proxiesNamespace, productNamespace, "default", "kube-system"];
  const cases = (["watcher", "functions", "lease-api"] as const).flatMap((account) =>
    places.map((namespace) => [account, namespace] as const),
  );

  test.each(cases)("to the %s in namespace %s", async (account, namespace) => {
    // What every account has, e.g. to ask for its own rights.
    const everybody = new Set(await rightsOf("lease-api", "default"));
    const granted = grants
      .filter((grant) => grant.account === `egress-proxies-${account}`)
      .filter((grant) => grant.namespace === undefined || grant.namespace === namespace)
      .map(({ verb, group, resource, name = "" }) => `${verb} ${group}/${resource} ${name}`);
    const rights = (await rightsOf(account, namespace)).filter((right) => !everybody.has(right));
    expect(rights.sort()).toEqual(granted.sort());
    const ofNobodysConcern = /^\w+ (authentication|authorization|certificates)\.k8s\.io\/(self|clustertrustbundles)/;
    expect([...everybody].filter((right) => !ofNobodysConcern.test(right))).toEqual([]);
  });
});
