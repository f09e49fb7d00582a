/**
 * The test files that talk to an API server: they run on the small one and on a real one. The architecture tests see to
 * it that none is forgotten.
 */
export const apiSuites = [
  "shared/cluster/{events,installation,leader-lease,proxies,refusals}.test.ts",
  "shared/model/crd.test.ts",
  "infra/local/kubernetes-api/{deletion,reading,watch,writes}.test.ts",
  "test/fakes/api-proxy/api-proxy.test.ts",
  "test/integration/api-faults/*.test.ts",
  "test/integration/kubectl.test.ts",
  "test/integration/lifecycle/*.test.ts",
  "test/integration/two-watchers.test.ts",
];

/** What only a real one can be asked. */
export const realSuites = ["test/cluster/{control-plane,npm-start,rbac,refusals}.test.ts"];
