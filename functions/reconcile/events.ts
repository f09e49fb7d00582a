import type { Outcome } from "#shared/domain/outcome.ts";
import type { Condition } from "#shared/model/condition.ts";
import type { ProxyStatus } from "#shared/model/proxy-status.ts";

export interface ProxyEvent {
  type: "Normal" | "Warning";
  reason: string;
  message: string;
}

/** What a user would want to read in `kubectl describe` after a run. */
export function eventsOf(before: ProxyStatus, after: ProxyStatus, { done, failed }: Outcome): ProxyEvent[] {
  const events: ProxyEvent[] = [];
  const name = after.instance?.name ?? before.instance?.name ?? "";
  const effect = done?.effect;
  if (effect?.kind === "record-intent" && effect.retiring.length > 0) {
    const vanished = effect.reason === "InstanceVanished";
    events.push({
      type: "Warning",
      reason: vanished ? "InstanceVanished" : "InstanceReplaced",
      message: effect.message,
    });
  }
  if (effect?.kind === "create")
    events.push({ type: "Normal", reason: "InstanceCreateRequested", message: `Asked for instance ${name}.` });
  if (effect?.kind === "delete")
    events.push({ type: "Normal", reason: "InstanceDeleted", message: `Instance ${effect.instance.name} is gone.` });
  if (became(before, after, "Provisioned"))
    events.push({ type: "Normal", reason: "InstanceLaunched", message: `Instance ${name} is running.` });
  if (became(before, after, "Ready"))
    events.push({ type: "Normal", reason: "InstanceReady", message: "The proxy can be leased." });
  for (const { effect: tried, failure } of failed) {
    if (tried.kind !== "create" && tried.kind !== "delete") continue;
    const reason =
      failure.code === "NameConflict"
        ? "NameConflict"
        : tried.kind === "create"
          ? "InstanceCreateFailed"
          : "DeletionBlocked";
    events.push({ type: "Warning", reason, message: failure.message });
  }
  return events;
}

function became(before: ProxyStatus, after: ProxyStatus, type: string): boolean {
  const isTrue = (list: readonly Condition[] = []): boolean =>
    list.some((each) => each.type === type && each.status === "True");
  return isTrue(after.conditions) && !isTrue(before.conditions);
}
