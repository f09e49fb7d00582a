import type { Outcome } from "#shared/domain/outcome.ts";
import type { Condition } from "#shared/model/condition.ts";
import type { ProxyStatus } from "#shared/model/proxy-status.ts";

export interface ProxyEvent {
  type: "Normal" | "Warning";
  reason: string;
  message: string;
}

/** What a user would want to read in `kubectl describe` after a run. */
export function eventsOf(before: ProxyStatus, after: ProxyStatus, outcome: Outcome): ProxyEvent[] {
  const failures = failuresOf(outcome);
  const told = new Set([...failures, ...troublesOf(before)].map(({ message }) => message));
  const isNews = ({ message }: ProxyEvent): boolean => told.size < told.add(message).size;
  return [...effectEvents(before, after, outcome), ...failures, ...troublesOf(after).filter(isNews)];
}

function effectEvents(before: ProxyStatus, after: ProxyStatus, { done }: Outcome): ProxyEvent[] {
  const events: ProxyEvent[] = [];
  const name = after.instance?.name ?? before.instance?.name ?? "";
  const effect = done?.effect;
  if (effect?.kind === "record-intent" && effect.retiring.length > 0) {
    const { reason, message } = effect;
    const vanished = reason === "InstanceVanished";
    // A replacement that the user asked for is no trouble.
    const type = reason === "IntentRecorded" ? "Normal" : "Warning";
    events.push({ type, reason: vanished ? "InstanceVanished" : "InstanceReplaced", message });
  }
  if (effect?.kind === "create")
    events.push({ type: "Normal", reason: "InstanceCreateRequested", message: `Asked for instance ${name}.` });
  // One without an id was never answered for: as far as anybody knows there was none.
  if (effect?.kind === "delete" && effect.instance.providerID !== undefined)
    events.push({ type: "Normal", reason: "InstanceDeleted", message: `Instance ${effect.instance.name} is gone.` });
  if (became(before, after, "Provisioned"))
    events.push({ type: "Normal", reason: "InstanceLaunched", message: `Instance ${name} is running.` });
  if (became(before, after, "Ready"))
    events.push({ type: "Normal", reason: "InstanceReady", message: "The proxy runs and passes its probes." });
  return events;
}

function failuresOf({ failed }: Outcome): ProxyEvent[] {
  return failed.flatMap(({ effect, failure }) => {
    if (effect.kind !== "create" && effect.kind !== "delete") return [];
    const usual = effect.kind === "create" ? "InstanceCreateFailed" : "DeletionBlocked";
    const reason = failure.code === "NameConflict" ? "NameConflict" : usual;
    return [{ type: "Warning", reason, message: failure.message }];
  });
}

/** What the conditions say that somebody may have to do something about. */
function troublesOf({ conditions = [] }: ProxyStatus): ProxyEvent[] {
  const isTrouble = ({ type, status, reason }: Condition): boolean =>
    (type === "Stalled" && status === "True") ||
    (type === "Healthy" && status === "False") ||
    reason === "WaitingForRetry" ||
    reason === "ProviderNotConfigured";
  return conditions.filter(isTrouble).map(({ reason, message }) => ({ type: "Warning", reason, message }));
}

function became(before: ProxyStatus, after: ProxyStatus, type: string): boolean {
  const isTrue = (list: readonly Condition[] = []): boolean =>
    list.some((each) => each.type === type && each.status === "True");
  return isTrue(after.conditions) && !isTrue(before.conditions);
}
