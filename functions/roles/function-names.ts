/** The functions that the role `functions` can run. */
export const functionNames = ["reconcile", "health-probe", "lease"] as const;
export type FunctionName = (typeof functionNames)[number];
