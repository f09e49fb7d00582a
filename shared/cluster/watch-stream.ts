import { z } from "zod";
import { Failure } from "#shared/errors/failure.ts";

/** One message of a watch. */
export interface WatchMessage {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  object: unknown;
}

const message = z.object({ type: z.enum(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]), object: z.unknown() });
const versioned = z.object({ metadata: z.object({ resourceVersion: z.string().min(1) }) });
const status = z.object({ code: z.number(), message: z.string() }).partial();

/**
 * The messages of a watch's body. Throws a Failure for an ERROR in the stream (code `Gone` for 410) and for what is not
 * a message: nothing after it can be trusted.
 */
export async function* watchMessages(body: AsyncIterable<unknown>): AsyncGenerator<WatchMessage, void> {
  for await (const line of lines(body)) yield parse(line);
}

/** The version that a message says was reached. */
export function watchedVersion(object: unknown): string {
  const parsed = versioned.safeParse(object);
  if (!parsed.success) throw failure("UnexpectedAnswer", "the watch sent an object without a version");
  return parsed.data.metadata.resourceVersion;
}

function parse(line: string): WatchMessage {
  const parsed = message.safeParse(json(line));
  if (!parsed.success) throw failure("UnexpectedAnswer", "the watch sent something that is no message");
  const { type, object } = parsed.data;
  if (type !== "ERROR") return { type, object };
  const said = status.safeParse(object).data;
  throw failure(said?.code === 410 ? "Gone" : "WatchError", said?.message ?? "the watch failed without a word");
}

function json(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined; // refused by the schema, with a meaning
  }
}

function failure(code: string, text: string): Failure {
  return new Failure({ class: "Transient", code, op: "watch", message: text });
}

async function* lines(body: AsyncIterable<unknown>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    if (chunk instanceof Uint8Array) rest += decoder.decode(chunk, { stream: true });
    const whole = rest.split("\n");
    rest = whole.pop() ?? "";
    yield* whole.filter((line) => line !== "");
  }
}
