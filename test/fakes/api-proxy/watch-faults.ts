import { refusal } from "./faults.ts";
import type { Fault } from "./rules.ts";

type Lines = AsyncIterable<string>;

const isEvent = (line: string): boolean => !line.startsWith('{"type":"BOOKMARK"');

/** The first `count` events of a watch never come; bookmarks and later ones do. */
export function loseEvents(count: number): Fault {
  return edited(async function* (lines) {
    let lost = 0;
    for await (const line of lines) if (!isEvent(line) || lost++ >= count) yield line;
  });
}

/** Every event of a watch comes twice. */
export const duplicateEvents: Fault = edited(async function* (lines) {
  for await (const line of lines) {
    yield line;
    if (isEvent(line)) yield line;
  }
});

/** The first event of a watch comes right after the second one. */
export const swapEvents: Fault = edited(async function* (lines) {
  let held: string | undefined;
  let swapped = false;
  for await (const line of lines) {
    if (swapped) yield line;
    else if (!isEvent(line)) continue;
    else if (held === undefined) held = line;
    else {
      yield line;
      yield held;
      swapped = true;
    }
  }
});

/** A watch that falls silent after so many events, bookmarks included, and stays open. */
export function silentAfter(events: number): Fault {
  return edited(async function* (lines) {
    let seen = 0;
    for await (const line of lines) {
      if (seen < events) yield line;
      if (isEvent(line)) seen += 1;
    }
  });
}

/** A watch in which an ERROR with code 410 follows after so many events. */
export function expiredAfter(events: number): Fault {
  const status: unknown = JSON.parse(refusal(410, "Expired").body.toString());
  return after(events, () => [JSON.stringify({ type: "ERROR", object: status })]);
}

/** A watch in which something that is no JSON follows after so many events. */
export function garbageAfter(events: number): Fault {
  return after(events, () => ["<html>at your service</html>"]);
}

/** A watch whose connection ends in the middle of the event after so many. */
export function cutAfter(events: number): Fault {
  return async (exchange) => {
    let seen = 0;
    for await (const line of await exchange.lines()) {
      if (seen === events && isEvent(line)) {
        await exchange.write(line.slice(0, line.length / 2));
        break;
      }
      await exchange.write(`${line}\n`);
      if (isEvent(line)) seen += 1;
    }
    exchange.drop();
  };
}

function edited(edit: (lines: Lines) => Lines): Fault {
  return (exchange) => exchange.relay(edit);
}

/** So many events, then what `end` says, then the end of the stream. */
function after(events: number, end: () => string[]): Fault {
  return edited(async function* (lines) {
    let seen = 0;
    if (events > 0)
      for await (const line of lines) {
        yield line;
        if (isEvent(line)) seen += 1;
        if (seen === events) break;
      }
    yield* end();
  });
}
