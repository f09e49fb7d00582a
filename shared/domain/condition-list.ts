import {
  type Condition,
  type ConditionReason,
  type ConditionType,
  conditionTypes,
  messageLimit,
} from "#shared/model/condition.ts";

export interface Said {
  status: Condition["status"];
  reason: ConditionReason;
  message: string;
}

/** What is to be said of each condition; an absent one is removed. */
export type Sayings = Partial<Record<ConditionType, Said>>;

/**
 * The new list of conditions, in a stable order. `lastTransitionTime` moves only when a status does: otherwise each
 * write would look like a change, and cause the next one.
 */
export function conditionList(
  before: readonly Condition[],
  sayings: Sayings,
  generation: number,
  now: Date,
): Condition[] {
  return conditionTypes.flatMap((type) => {
    const said = sayings[type];
    if (said === undefined) return [];
    const old = before.find((each) => each.type === type);
    const lastTransitionTime = old?.status === said.status ? old.lastTransitionTime : now.toISOString();
    return [{ type, ...said, message: cut(said.message), observedGeneration: generation, lastTransitionTime }];
  });
}

/** One line of at most `messageLimit` characters, the last one an ellipsis when something was cut off. */
export function cut(message: string): string {
  const line = message.replace(/\s*\n\s*/g, " ").trim();
  return line.length <= messageLimit ? line : `${line.slice(0, messageLimit - 1)}…`;
}
